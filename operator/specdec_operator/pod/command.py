"""Run one command of an engine build: its output goes to the log as it comes, its last words are kept."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from specdec_operator.pod.errors import ProgramFailure

_KEPT_LINES = 20
_HELP_TIMEOUT_SECONDS = 600
_STOP_SECONDS = 10
_FLAG = re.compile(r"(?<![\w-])--[A-Za-z0-9][\w-]*")
_OUT_OF_MEMORY = re.compile(
    r"CUDA out of memory|CUDA error: out of memory|cudaErrorMemoryAllocation|OutOfMemory|std::bad_alloc|\bMemoryError\b"
)


@dataclass(frozen=True)
class Finished:
    """How a command ended.

    Attributes:
        returncode: exit code, or the negative signal.
        tail: the last 20 lines of what it wrote.
        out_of_memory: it was killed for memory, or said that it had none left.
    """

    returncode: int
    tail: str
    out_of_memory: bool


def resolve(argv: Sequence[str], places: Mapping[str, str]) -> list[str]:
    """A command with its places filled in and its candidates decided.

    Args:
        argv: the first two elements may be candidates separated by `|`.
        places: what `{name}` stands for.

    Raises:
        ProgramFailure: BuildProgramMissing, none of the candidates exists.
    """
    resolved = [_filled(argument, places) for argument in argv]
    for position in range(min(2, len(resolved))):
        if position == 0 or "|" in resolved[position]:
            resolved[position] = _first_existing(resolved[position])
    return resolved


def run_command(argv: Sequence[str], *, environment: Mapping[str, str] | None = None) -> Finished:
    """Run a command to its end; a signal to this process stops the command and all that it started."""
    tail: deque[str] = deque(maxlen=_KEPT_LINES)
    out_of_memory = False
    with subprocess.Popen(
        list(argv), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment, start_new_session=True
    ) as process:
        try:
            for line in process.stdout or ():
                text = line.decode("utf-8", errors="replace")
                print(text, end="", flush=True)
                tail.append(text.rstrip())
                out_of_memory = out_of_memory or _OUT_OF_MEMORY.search(text) is not None
            returncode = process.wait()
        except BaseException:
            _stop(process)
            raise
    return Finished(returncode, "\n".join(tail), out_of_memory or returncode in (137, -signal.SIGKILL))


def unknown_flags(argv: Sequence[str]) -> list[str]:
    """The `--flags` of a command that its own `--help` doesn't list.

    Raises:
        ProgramFailure: EngineBuildFailed, the program can't even print its help.
    """
    program = list(argv[: 2 if _is_interpreter(argv[0]) else 1])
    command = [*program, "--help"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_HELP_TIMEOUT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise ProgramFailure("EngineBuildFailed", f"{' '.join(command)} didn't end: {error}") from error
    if done.returncode != 0:
        said = "\n".join((done.stderr or done.stdout).splitlines()[-_KEPT_LINES:])
        raise ProgramFailure("EngineBuildFailed", f"{' '.join(command)} ended with {done.returncode}: {said}")
    listed = set(_FLAG.findall(done.stdout + done.stderr))
    used = [argument.partition("=")[0] for argument in argv[len(program) :] if argument.startswith("--")]
    return sorted(set(used) - listed)


def _filled(argument: str, places: Mapping[str, str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda match: places.get(match.group(1), match.group()), argument)


def _first_existing(candidates: str) -> str:
    for candidate in candidates.split("|"):
        if os.path.exists(candidate) if "/" in candidate else shutil.which(candidate):  # noqa: PTH110 - a plain text
            return candidate
    raise ProgramFailure(
        "BuildProgramMissing",
        f"the image holds none of {candidates.replace('|', ', ')}; declare the release that the image really is, in "
        "spec.runtime.release",
    )


def _is_interpreter(program: str) -> bool:
    return program.rpartition("/")[2].startswith("python")


def _stop(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_STOP_SECONDS)
            return
    print(f"process {process.pid} doesn't end", file=sys.stderr)

"""Programs of the cluster: started in their own session, logged to files, stopped for certain.

Every program carries the cluster's directory in its environment (`OWNER_VARIABLE`) and hands it on to what it
starts. That is how a sweep finds all of a dead cluster's processes: no list of process ids can be torn or late.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.cluster.commands import search_path
from testbed.cluster.errors import NotReadyError, ProgramError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

OWNER_VARIABLE = "SPECDEC_TESTBED_CLUSTER"
GARBAGE_COLLECTION_PERCENT = 400
POLL_SECONDS = 0.05
LOG_TAIL_LINES = 15
PROC = Path("/proc")


@dataclass(frozen=True)
class Program:
    """A program to run.

    Attributes:
        name: what people call it; also the name of its log file.
        argv: the command.
    """

    name: str
    argv: Sequence[str]


@dataclass(frozen=True)
class ProcessIdentity:
    """A process, told apart from a later one with the same id.

    Attributes:
        pid: process id.
        start_ticks: when it started, in clock ticks since boot.
    """

    pid: int
    start_ticks: int

    @classmethod
    def of(cls, pid: int) -> ProcessIdentity | None:
        """Identify a running process; None if there is none, or only its zombie."""
        try:
            stat = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None
        # The command's name stands in parentheses and may hold anything, spaces and parentheses too.
        fields = stat.rpartition(")")[2].split()
        return None if fields[0] in {"Z", "X"} else cls(pid=pid, start_ticks=int(fields[19]))

    def alive(self) -> bool:
        """Whether this very process still runs."""
        return ProcessIdentity.of(self.pid) == self


class Programs:
    """The running programs of one cluster."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._running: list[tuple[Program, subprocess.Popen[bytes]]] = []

    def start(self, program: Program) -> int:
        """Start a program, its output going to `logs/<name>.log` below the cluster's directory.

        Returns:
            Its process id.

        Raises:
            ProgramError: the program could not be started at all.
        """
        log = self._log(program)
        log.parent.mkdir(parents=True, exist_ok=True)
        environment = {
            "PATH": search_path(),
            "HOME": str(self._directory),
            OWNER_VARIABLE: str(self._directory),
            **go_settings(),
        }
        with log.open("ab") as output:
            try:
                process = subprocess.Popen(
                    list(program.argv),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    cwd=self._directory,
                    env=environment,
                    start_new_session=True,
                )
            except OSError as error:
                raise ProgramError(f"{program.name} could not be started: {error}") from error
        self._running.append((program, process))
        return process.pid

    def check(self) -> None:
        """Raise if a program has ended.

        Raises:
            ProgramError: with the program's exit code and the end of its log.
        """
        for program, process in self._running:
            code = process.poll()
            if code is not None:
                raise ProgramError(
                    f"{program.name} ended with code {code}; the end of {self._log(program)}:\n"
                    f"{log_tail(self._log(program))}"
                )

    def stop(self) -> None:
        """Kill all programs at once, and wait until they have ended.

        None has anything to lose: what they keep goes with the cluster. Asked one by one to end, they wait for each
        other's connections, half a minute where there is a real node.
        """
        for _, process in self._running:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        while self._running:
            self._running.pop()[1].wait()

    def _log(self, program: Program) -> Path:
        return self._directory / "logs" / f"{program.name}.log"


def go_settings(processors: int | None = None) -> dict[str, str]:
    """Return the environment of the programs, which all are written in Go, for as many processors as this machine has.

    They collect garbage when their memory has grown fivefold instead of twofold: a fifth less of their time, for some
    hundred megabytes. On half of the processors (one, of two) they take a third less time for the same work, and are
    sooner done: they look less for work on each other's threads and take nothing from those beside them to do so.
    """
    available = processors or len(os.sched_getaffinity(0))
    return {"GOGC": str(GARBAGE_COLLECTION_PERCENT), "GOMAXPROCS": str(max(1, available // 2))}


def wait_until(condition: Callable[[], bool], *, what: str, seconds: float, programs: Programs | None = None) -> None:
    """Wait until a condition holds, watching that the programs live.

    Raises:
        NotReadyError: the condition did not hold within `seconds`.
        ProgramError: a program ended meanwhile.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        if programs is not None:
            programs.check()
        if time.monotonic() > deadline:
            raise NotReadyError(f"{what}: not within {seconds:.0f} s")
        time.sleep(POLL_SECONDS)


def log_tail(log: Path, *, lines: int = LOG_TAIL_LINES) -> str:
    """Return the last lines of a log file; a note if it can't be read."""
    try:
        content = log.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        return f"(no log: {error})"
    return "\n".join(content.splitlines()[-lines:])


def processes_of(directory: Path) -> tuple[ProcessIdentity, ...]:
    """Find the processes that carry a cluster's directory in their environment."""
    marker = f"{OWNER_VARIABLE}={directory}".encode()
    found = []
    for folder in PROC.iterdir():
        try:
            carries = folder.name.isdigit() and marker in (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        identity = ProcessIdentity.of(int(folder.name)) if carries else None
        if identity is not None:
            found.append(identity)
    return tuple(found)


def kill(processes: Iterable[ProcessIdentity]) -> None:
    """Kill each of the processes that still is the one meant."""
    for identity in processes:
        if identity.alive():
            with suppress(ProcessLookupError):
                os.kill(identity.pid, signal.SIGKILL)

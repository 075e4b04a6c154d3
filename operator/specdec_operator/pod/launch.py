"""Start the server in the place of this process, with the limits that Kubernetes has no field for."""

import os
import resource
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from specdec_operator.pod.content import require_content
from specdec_operator.pod.errors import InvalidInput, ProgramFailure
from specdec_operator.pod.inputs import LaunchInput
from specdec_operator.pod.program import run

# what NVIDIA's launch command asks for; an unlimited stack would give each thread a smaller one
_STACK_BYTES = 64 * 1024 * 1024
_DIRECTORY_VARIABLES = frozenset(
    {
        "HOME",
        "TMPDIR",
        "HF_HOME",
        "XDG_CACHE_HOME",
        "TRITON_CACHE_DIR",
        "TORCHINDUCTOR_CACHE_DIR",
        "VLLM_CACHE_ROOT",
        "FLASHINFER_WORKSPACE_BASE",
    }
)


def launch(given: LaunchInput) -> dict[str, Any]:
    """Raise the limits, make the scratch directories and become the server; returns only by raising.

    Raises:
        ProgramFailure: ProgramNotFound, ScratchNotWritable, or what is to be loaded is gone or damaged.
    """
    if not given.argv:
        raise InvalidInput("input.argv must name a program")
    environment = {**os.environ, **given.environment}
    if shutil.which(given.argv[0], path=environment.get("PATH")) is None:
        raise ProgramFailure("ProgramNotFound", f"the image holds no {given.argv[0]}; check spec.runtime.image")
    require_content(given)
    _raise_limit("memlock", resource.RLIMIT_MEMLOCK, unlimited=resource.RLIM_INFINITY)
    _raise_limit("stack", resource.RLIMIT_STACK, unlimited=_STACK_BYTES)
    _make_directories(environment)
    sys.stdout.flush()
    os.execvpe(given.argv[0], list(given.argv), environment)  # noqa: S606 - argv comes from the operator, no shell


def _raise_limit(name: str, limit: int, *, unlimited: int) -> None:
    soft, hard = resource.getrlimit(limit)
    wanted = unlimited if hard == resource.RLIM_INFINITY else hard
    if soft == resource.RLIM_INFINITY or (wanted != resource.RLIM_INFINITY and soft >= wanted):
        return
    try:
        resource.setrlimit(limit, (wanted, hard))
    except (OSError, ValueError) as error:
        print(f"the {name} limit stays at {soft}: {error}", file=sys.stderr)


def _make_directories(environment: Mapping[str, str]) -> None:
    for name in sorted(_DIRECTORY_VARIABLES & set(environment)):
        # HOME may be / or a place of the image's that nothing needs to write to
        if environment[name] and not Path(environment[name]).is_dir():
            _make_directory(name, Path(environment[name]))


def _make_directory(name: str, path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ProgramFailure(
            "ScratchNotWritable", f"{name}={path} can't be made: {error}; mount a writable volume there"
        ) from error


if __name__ == "__main__":
    sys.exit(run(LaunchInput, launch))

"""What a probe remembers between its runs, in one small file, for as long as the container's first process lives."""

import json
import os
from pathlib import Path
from typing import Any

FIRST_PROCESS = Path("/proc/1/stat")


def read_state(path: Path, *, first_process: Path = FIRST_PROCESS) -> dict[str, Any]:
    """The last run's state; empty if there is none that can be read, or if it is of an earlier container.

    Args:
        path: the state file; its volume may outlive the container.
        first_process: the `stat` file of the container's first process.
    """
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(state, dict) or state.pop("started", None) != _start(first_process):
        return {}
    return state


def write_state(path: Path, state: dict[str, Any], *, first_process: Path = FIRST_PROCESS) -> None:
    """Replace the state, whole or not at all: two runs may overlap."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(json.dumps({**state, "started": _start(first_process)}), encoding="utf-8")
    temporary.replace(path)


def _start(first_process: Path) -> str:
    try:
        # the program's name stands in brackets and may hold anything; the start time is the 20th field behind it
        return first_process.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""

"""What a probe remembers between its runs, in one small file."""

import json
import os
from pathlib import Path
from typing import Any


def read_state(path: Path) -> dict[str, Any]:
    """The last run's state; empty if there is none that can be read."""
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return state if isinstance(state, dict) else {}


def write_state(path: Path, state: dict[str, Any]) -> None:
    """Replace the state, whole or not at all: two runs may overlap."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(json.dumps(state), encoding="utf-8")
    temporary.replace(path)

"""The operator's log as people read it: its lines are JSON objects."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def log_lines(content: str, *, count: int = 15) -> str:
    """Return the last lines of a log, indented."""
    return "\n".join(f"  {plain_line(line)}" for line in content.splitlines()[-count:])


def plain_line(line: str) -> str:
    """Return the time, level and message of a line; the line itself if it is no record."""
    try:
        record = json.loads(line)
        said = f"{record['time'][11:23]} {record['level']} {record['message']}"
        return f"{said}\n{record['error']}" if "error" in record else said
    except (ValueError, KeyError, TypeError):
        return line


class FollowedLog:
    """A log file that grows.

    Args:
        file: it need not be there yet.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._read = 0

    def new_lines(self) -> list[str]:
        """Return the lines that came since the last call; one without its end comes later."""
        if not self._file.exists():
            return []
        with self._file.open("rb") as log:
            log.seek(self._read)
            whole, end, _ = log.read().rpartition(b"\n")
        self._read += len(whole) + len(end)
        return [plain_line(line) for line in whole.decode(errors="replace").splitlines()]

"""The live view's lines, fitted to a width. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from testbed.demo.models import Tone

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from testbed.demo.models import Row

COLORS = {Tone.GOOD: "\x1b[32m", Tone.WAITING: "\x1b[33m", Tone.BAD: "\x1b[31m"}
BOLD, DIM, PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[0m"
GAP = "  "


@dataclass(frozen=True)
class _Column:
    title: str
    text: Callable[[Row], str]
    minimum: int = 0


def _columns(*, short: bool) -> tuple[_Column, ...]:
    # Widths that the longest usual words need, so that columns stand still while models move on.
    return (
        _Column("MODEL", lambda row: row.name),
        _Column("STATUS", lambda row: row.status, 13),
        _Column("MADE", lambda row: row.artifacts),
        _Column("PLACEMENT", lambda row: row.short_placement if short else row.placement, 22 if short else 43),
        _Column("READY", lambda row: row.ready),
        _Column("TIME", lambda row: f"{row.seconds:.0f} s", 5),
    )


def table(rows: Sequence[Row], *, width: int, colored: bool = False) -> list[str]:
    """Return a title line and one line per model, none longer than `width` characters."""
    lines, length = _lines(rows, _columns(short=False), width=width, colored=colored)
    if length > width:
        lines, _ = _lines(rows, _columns(short=True), width=width, colored=colored)
    return lines


def plain_line(row: Row) -> str:
    """Return a model's line for an output that can't be redrawn."""
    parts = [f"{row.seconds:4.0f} s", row.name, row.status]
    if row.artifacts:
        parts.append(f"{row.artifacts} made")
    if row.placement:
        parts.append(row.placement)
    return GAP.join([*parts, f"{row.ready} ready"])


def _lines(rows: Sequence[Row], columns: Sequence[_Column], *, width: int, colored: bool) -> tuple[list[str], int]:
    widths = [max(column.minimum, len(column.title), *(len(column.text(row)) for row in rows), 0) for column in columns]
    title = _line([column.title for column in columns], widths)[:width]
    lines = [f"{DIM}{title}{PLAIN}" if colored else title]
    for row in rows:
        line = _line([column.text(row) for column in columns], widths)[:width]
        lines.append(_painted(line, row) if colored else line)
    return lines, sum(widths) + len(GAP) * (len(widths) - 1)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return GAP.join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def _painted(line: str, row: Row) -> str:
    before, status, after = line.partition(f"{GAP}{row.status}")
    return f"{BOLD}{before}{PLAIN}{COLORS[row.tone]}{status}{PLAIN}{after}"

"""Where the demo writes: redrawn in place on a terminal, plain lines otherwise."""

from __future__ import annotations

import os
import shutil
import textwrap
from typing import TYPE_CHECKING

from testbed.demo.table import BOLD, PLAIN, plain_line, table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TextIO

    from testbed.demo.models import Row

DEFAULT_WIDTH = 100


class Screen:
    """The demo's output.

    Args:
        stream: where it goes.
        environment: NO_COLOR in it means no color.
    """

    def __init__(self, stream: TextIO, *, environment: Mapping[str, str] = os.environ) -> None:
        self._stream = stream
        self._terminal = stream.isatty() and environment.get("TERM", "") != "dumb"
        self._colored = self._terminal and not environment.get("NO_COLOR")
        self._drawn = 0
        self._said: dict[str, tuple[str, ...]] = {}

    @property
    def width(self) -> int:
        """Columns of the terminal; 100 where there is none."""
        return shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns if self._terminal else DEFAULT_WIDTH

    def say(self, text: str = "") -> None:
        """Write a line."""
        self._write(f"{text}\n")

    def wrapped(self, text: str, *, indent: str) -> None:
        """Write a text in lines no wider than the terminal; those after the first begin with `indent`."""
        lines = textwrap.wrap(
            text, self.width, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False
        )
        self.say("\n".join(lines))

    def title(self, text: str) -> None:
        """Write a heading with an empty line before it."""
        self._write(f"\n{BOLD}{text}{PLAIN}\n" if self._colored else f"\n{text}\n")

    def show(self, rows: Sequence[Row]) -> None:
        """Show the models: all of them in place, or those that changed."""
        if self._terminal:
            self._redraw(table(rows, width=self.width - 1, colored=self._colored))
            return
        for row in rows:
            seen = (row.status, row.artifacts, row.placement, row.ready)
            if self._said.get(row.name) != seen:
                self._said[row.name] = seen
                self.say(plain_line(row))

    def _redraw(self, lines: Sequence[str]) -> None:
        up = f"\x1b[{self._drawn}A" if self._drawn else ""
        self._write(up + "".join(f"\r\x1b[2K{line}\n" for line in lines))
        self._drawn = len(lines)

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()

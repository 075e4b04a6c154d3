"""Telling a human what goes on, from the first second."""

from __future__ import annotations

import shutil
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from typing import TextIO

TERMINAL_INTERVAL_SECONDS = 1.0
PLAIN_INTERVAL_SECONDS = 30.0


class Progress(Protocol):
    """Where the testbed says what it does."""

    def say(self, message: str) -> None:
        """Say one line."""

    def step(self, message: str) -> AbstractContextManager[None]:
        """Say that a step begins, how long it has taken while the body runs, and that it is done."""


class SilentProgress:
    """Says nothing."""

    def say(self, message: str) -> None:
        """Ignore the line."""

    @contextmanager
    def step(self, message: str) -> Iterator[None]:
        """Run the body."""
        del message
        yield


def _columns() -> int:
    return shutil.get_terminal_size().columns


class TerminalProgress:
    """Writes lines; on a terminal the line of a running step counts its seconds."""

    def __init__(
        self, stream: TextIO, *, clock: Callable[[], float] = time.monotonic, columns: Callable[[], int] = _columns
    ) -> None:
        self._stream = stream
        self._clock = clock
        self._columns = columns
        self._terminal = stream.isatty()

    def say(self, message: str) -> None:
        """Write one line."""
        self._write(f"{message}\n")

    @contextmanager
    def step(self, message: str) -> Iterator[None]:
        """Announce the step, report its seconds while the body runs, and its end."""
        started, finished = self._clock(), threading.Event()
        self._write(self._fitted(message, " …") if self._terminal else f"{message} …\n")
        reporter = threading.Thread(
            target=self._report, args=(message, started, finished), name="progress", daemon=True
        )
        reporter.start()
        outcome = "failed after"
        try:
            yield
            outcome = "done in"
        finally:
            finished.set()
            reporter.join()
            elapsed = self._clock() - started
            self._write(f"{self._line_start()}{message}: {outcome} {elapsed:.1f} s\n")

    def _report(self, message: str, started: float, finished: threading.Event) -> None:
        interval = TERMINAL_INTERVAL_SECONDS if self._terminal else PLAIN_INTERVAL_SECONDS
        while not finished.wait(interval):
            counted = f" … {self._clock() - started:.0f} s"
            self._write(f"\r\x1b[2K{self._fitted(message, counted)}" if self._terminal else f"{message}{counted}\n")

    def _fitted(self, message: str, end: str) -> str:
        """A line of one row: one that wraps can't be written again in its place."""
        room = max(self._columns() - 1 - len(end), 1)
        return (message if len(message) <= room else f"{message[: room - 1]}…") + end

    def _line_start(self) -> str:
        return "\r\x1b[2K" if self._terminal else ""

    def _write(self, text: str) -> None:
        # Whoever read this may be gone, which must keep nobody from stopping a cluster.
        with suppress(OSError, ValueError):
            self._stream.write(text)
            self._stream.flush()

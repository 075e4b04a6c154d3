"""Restarting a process when its code changes; code that can't be compiled is told, and the process left alone."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from watchfiles import awatch

from testbed.operator.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection

LOOK_MILLISECONDS = 300


class Restartable(Protocol):
    """A process that can be started again."""

    @property
    def exit_code(self) -> int | None:
        """With what its last life ended; None while it runs."""

    def start(self) -> None:
        """Start it."""

    def stop(self) -> int | None:
        """End it in good order.

        Raises:
            OperatorError: it did not end in time, and was killed.
        """


class Reloader:
    """Keeps a process at the state of its code.

    Args:
        process: what is restarted; the reloader starts it first.
        say: gets one line for each thing that happens.
    """

    def __init__(self, process: Restartable, *, say: Callable[[str], None]) -> None:
        self._process = process
        self._say = say
        self._broken: set[Path] = set()
        self._end_is_told = False

    def start(self) -> None:
        """Start the process."""
        self._end_is_told = False
        self._process.start()

    def changed(self, files: Collection[Path]) -> None:
        """Restart the process with changed files, unless one of them can't be compiled."""
        errors = {file: error for file in {*self._broken, *files} if (error := syntax_error(file))}
        self._broken = set(errors)
        if errors:
            for error in errors.values():
                self._say(error)
            self._say("the operator was not restarted; mend this, and it will be")
            return
        self._say(f"{', '.join(sorted(file.name for file in files))} changed: restarting the operator")
        try:
            self._process.stop()
        except OperatorError as error:
            self._say(str(error))
        self.start()

    def look(self) -> None:
        """Say once that the process ended by itself."""
        if self._process.exit_code is not None and not self._end_is_told:
            self._end_is_told = True
            self._say(f"the operator ended with code {self._process.exit_code}; it starts again at the next edit")


async def keep_reloading(
    reloader: Reloader, changes: AsyncIterator[Collection[Path]], *, show_log: Callable[[], None]
) -> None:
    """Start the process, and restart it at changes until there are no more.

    Args:
        reloader: of the process.
        changes: the files of each change; none of them at a time to look around.
        show_log: called often, to show what the process has logged since.
    """
    reloader.start()
    async for files in changes:
        if files:
            await asyncio.to_thread(reloader.changed, files)
        show_log()
        reloader.look()


async def changes_below(directory: Path) -> AsyncIterator[Collection[Path]]:
    """Give the files that changed below a folder, a moment after they did, and no files every now and then."""
    async for changes in awatch(directory, rust_timeout=LOOK_MILLISECONDS, yield_on_timeout=True):
        yield {Path(name) for _, name in changes}


def syntax_error(file: Path) -> str:
    """Say where and why a Python file can't be compiled; empty if it can, is gone, or is no Python file."""
    if file.suffix != ".py" or not file.is_file():
        return ""
    try:
        compile(file.read_bytes(), str(file), "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        line = f":{error.lineno}" if isinstance(error, SyntaxError) else ""
        return f"{file}{line}: {error.msg if isinstance(error, SyntaxError) else error}"
    return ""

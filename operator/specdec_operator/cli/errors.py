"""The error tree of the command line."""

from __future__ import annotations


class CommandLineError(Exception):
    """The command can't be carried out; the message names the file and the remedy."""


class UnreadableFileError(CommandLineError):
    """A file can't be read, or something in it is not YAML.

    Attributes:
        file: As the user named it.
        problem: What is wrong.
        line: Where, counted from 1, if that is known.
    """

    def __init__(self, file: str, problem: str, line: int | None = None) -> None:
        super().__init__(f"{file}: {problem}" if line is None else f"{file}:{line}: {problem}")
        self.file, self.problem, self.line = file, problem, line


class FactsError(CommandLineError):
    """What models and Jobs said can't be read."""

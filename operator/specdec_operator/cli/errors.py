"""The error tree of the command line."""

from __future__ import annotations


class CommandLineError(Exception):
    """The command cannot be carried out; the message names the file and the remedy."""


class UnreadableFileError(CommandLineError):
    """A file cannot be read, or is no YAML."""


class FactsError(CommandLineError):
    """What models and Jobs said can't be read."""

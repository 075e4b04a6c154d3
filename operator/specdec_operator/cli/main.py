"""Entry of the command line: one module per subcommand.

A subcommand's module has `add_to(commands)`, which adds its parser and sets `run`, the function that takes the parsed
arguments and returns the exit code.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final, Protocol

from specdec_operator.cli import render, validate

if TYPE_CHECKING:
    from collections.abc import Sequence


class Subcommand(Protocol):
    """A module of this package that is a subcommand."""

    def add_to(self, commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
        """Add the subcommand's parser, with `run` as a default."""


SUBCOMMANDS: Final[tuple[Subcommand, ...]] = (render, validate)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: The arguments after the program's name; the process's own if left out.

    Returns:
        The exit code, as the subcommand documents it.
    """
    parser = argparse.ArgumentParser(prog="specdec", description="Speculative decoding on Kubernetes.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for subcommand in SUBCOMMANDS:
        subcommand.add_to(commands)
    arguments = parser.parse_args(argv)
    code: int = arguments.run(arguments)
    return code

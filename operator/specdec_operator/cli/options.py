"""Options that several subcommands have, named as kubectl names them."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable


def manifests(command: Callable[..., int]) -> Callable[..., int]:
    """`-f`, `-R` and files as arguments; the command gets `files` and `recursive`."""

    @functools.wraps(command)
    def run(*, filename: tuple[str, ...], file: tuple[str, ...], **options: Any) -> int:
        if not (filename or file):
            raise click.UsageError("name what to read: a file, a directory, or - for standard input")
        return command(files=(*filename, *file), **options)

    for option in (
        click.option("-R", "--recursive", is_flag=True, help="Look into the directories of a directory, too."),
        click.option(
            "-f",
            "--filename",
            metavar="FILE",
            multiple=True,
            help="File, directory, or - for standard input; once for each. The same as FILE alone.",
        ),
        click.argument("file", metavar="[FILE]...", nargs=-1),
    ):
        run = option(run)
    return run


configuration = click.option(
    "--configuration", metavar="FILE", type=click.Path(path_type=Path), help="The operator's configuration."
)


def output(*formats: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """`-o`; the first format is the default."""
    return click.option(
        "-o", "--output", type=click.Choice(formats), default=formats[0], show_default=True, help="How to print it."
    )

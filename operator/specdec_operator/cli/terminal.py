"""Lines for people."""

from __future__ import annotations

import re
from typing import Final

import click

_UNSEEN: Final = re.compile(r"[^\x20-\x7e\xa0-\U0010ffff]")


def say(*lines: str, error: bool = False) -> None:
    r"""Print lines; characters that would steer the terminal are written out, as in `\x1b`.

    Args:
        error: Print them to standard error.
    """
    for line in lines:
        click.echo(_UNSEEN.sub(lambda found: repr(found[0])[1:-1], line), err=error)

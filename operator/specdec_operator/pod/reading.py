"""Reading what somebody else wrote: whatever is wrong with a file is said of that file, with what to do about it."""

import errno
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from specdec_operator.pod.errors import ProgramFailure

_FIRST_BYTES = 1024
_POINTER = b"version https://git-lfs.github.com/spec/"
_PAGES = (b"<!doctype html", b"<html")
_PASSING = frozenset({errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EAGAIN, errno.ENOMEM, errno.EINTR})
"""What a store says when it is away for a moment; all else is the file's own fault."""
_MOST_JSON_BYTES = 32 * 1024 * 1024


@contextmanager
def reading(path: Path, what: str) -> Iterator[None]:
    """Turn every error that a file's content causes into one that names the file.

    Args:
        path: The file.
        what: What it should be, as in `safetensors file`.

    Raises:
        ProgramFailure: UnreadableModel.
    """
    try:
        yield
    except ProgramFailure:
        raise
    except Exception as error:  # the content is foreign, and so is what it makes a library raise
        passing = isinstance(error, OSError) and error.errno in _PASSING
        raise unreadable(path, what, _words(error), terminal=not passing) from error


def unreadable(path: Path, what: str, why: str, *, terminal: bool = True) -> ProgramFailure:
    """The failure of a file that is not what it should be."""
    seen = what_replaced(path)
    said = f"{path} {seen}" if seen else f"{path} is no {what} ({why}); copy or download it again"
    return ProgramFailure("UnreadableModel", said, terminal=terminal)


def read_bytes(path: Path, *, most: int) -> bytes:
    """A file's content.

    Raises:
        ValueError: It is empty, or longer than `most` bytes.
        OSError: It can't be read.
    """
    with path.open("rb") as file:
        content = file.read(most + 1)
    if not content:
        raise ValueError("it is empty")
    if len(content) > most:
        raise ValueError(f"it has {path.stat().st_size} bytes, more than {most}")
    return content


def read_json(path: Path, what: str = "JSON file", *, most: int = _MOST_JSON_BYTES) -> Any:
    """A JSON file of at most `most` bytes.

    Raises:
        ProgramFailure: UnreadableModel.
    """
    with reading(path, what):
        return json.loads(read_bytes(path, most=most).decode("utf-8"))


def what_replaced(path: Path) -> str:
    """What a file is in place of what it should be, with the remedy; empty if its first bytes don't tell."""
    try:
        with path.open("rb") as file:
            first = file.read(_FIRST_BYTES)
    except OSError:
        return ""
    if not first:
        return "is empty: its download or copy was interrupted; copy or download it again"
    if first.startswith(_POINTER):
        return (
            "is a Git LFS pointer, not the file that it stands for: run `git lfs pull` in the clone, and copy it again"
        )
    if first.lstrip(b"\xef\xbb\xbf \t\r\n").lower().startswith(_PAGES):
        return "is a web page, such as a login or error page saved under that name: download the file again"
    return ""


def _words(error: Exception) -> str:
    words = " ".join(str(error).split())[:200]
    return words if type(error) is ValueError and words else f"{type(error).__name__}: {words}".rstrip(": ")

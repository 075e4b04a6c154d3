"""The files that a command line names: files, directories and standard input, as kubectl takes them."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from specdec_operator.cli.errors import UnreadableFileError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

STDIN: Final = "-"
LARGEST: Final = 16 * 2**20
"""The most bytes of one file."""
_SUFFIXES: Final = (".yaml", ".yml", ".json")


def manifest_files(given: Iterable[str], *, recursive: bool = False) -> Iterator[str | UnreadableFileError]:
    """Find the files to read: a directory stands for the YAML and JSON files in it.

    Args:
        recursive: Look into the directories of a directory, too.

    Yields:
        Files, and what can't be looked into.
    """
    for name in given:
        if name == STDIN or not Path(name).is_dir():
            yield name
        else:
            yield from _in_directory(name, recursive=recursive)


def _in_directory(directory: str, *, recursive: bool) -> Iterator[str | UnreadableFileError]:
    unreadable: list[OSError] = []
    found = False
    for folder, folders, names in os.walk(directory, onerror=unreadable.append):
        folders[:] = sorted(folders) if recursive else []
        manifests = [os.path.join(folder, name) for name in sorted(names) if name.endswith(_SUFFIXES)]  # noqa: PTH118  a Path drops the "./" that the user wrote
        found = found or bool(manifests)
        yield from manifests
    yield from (UnreadableFileError(str(error.filename), str(error.strerror)) for error in unreadable)
    if not found and not unreadable:
        more = "" if recursive else "; -R looks into its directories, too"
        yield UnreadableFileError(directory, f"no file of this directory ends in {', '.join(_SUFFIXES)}{more}")


def read_file(file: str) -> str:
    """The text of a file.

    Args:
        file: Its path, or `-` for standard input.

    Raises:
        UnreadableFileError: It can't be read, is too large, or is not text.
    """
    try:
        content = _bytes(file)
    except OSError as error:
        remedy = ": addresses are not read; download it, or pipe it into `-f -`" if "://" in file else ""
        raise UnreadableFileError(file, f"{error.strerror}{remedy}") from error
    if len(content) > LARGEST:
        raise UnreadableFileError(file, f"larger than {LARGEST // 2**20} MiB: not a manifest, or one to split")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise UnreadableFileError(file, f"not UTF-8 text (byte {error.start})") from error


def _bytes(file: str) -> bytes:
    if file == STDIN:
        return sys.stdin.buffer.read(LARGEST + 1)
    with Path(file).open("rb") as opened:
        return opened.read(LARGEST + 1)

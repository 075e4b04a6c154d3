"""Files that are made from the code: written, or held against what is there."""

from __future__ import annotations

import argparse
import difflib
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def generator_parser(module: str, description: str | None) -> argparse.ArgumentParser:
    """The command line of a generator, with `--check`.

    Args:
        module: As `python -m` takes it.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file is not current")
    return parser


def write_or_check(files: Mapping[Path, str], *, check: bool) -> int:
    """Write files, or say on standard error how those on disk differ.

    Args:
        files: Text per path.
        check: Write nothing.

    Returns:
        The exit status: 1 if a checked file differs, else 0.
    """
    if not check:
        for path, text in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return 0
    found = _differences(files)
    if found:
        sys.stderr.write(f"{found}\nnot current: run `make generate`\n")
    return 1 if found else 0


def _differences(files: Mapping[Path, str]) -> str:
    """How the files on disk differ from what they should be, as a unified diff; empty if they do not."""
    parts: list[str] = []
    for path, text in files.items():
        present = path.read_text(encoding="utf-8") if path.exists() else ""
        parts += difflib.unified_diff(
            present.splitlines(keepends=True), text.splitlines(keepends=True), str(path), f"{path} (generated)"
        )
    return "".join(parts)

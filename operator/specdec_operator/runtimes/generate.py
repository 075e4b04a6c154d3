"""Writes what is made from the capability table: the page of methods, backends and releases.

    python -m specdec_operator.runtimes.generate [--check] [--output docs/capabilities.md]

`--check` writes nothing: it prints how the file differs from what would be written, and exits 1 if it does.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from specdec_operator.api.generate import differences
from specdec_operator.runtimes.capabilities import page
from specdec_operator.runtimes.table import load_table

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Write or check the page.

    Returns:
        1 if `--check` finds a difference, else 0.
    """
    parser = argparse.ArgumentParser(prog="python -m specdec_operator.runtimes.generate", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the file is not current")
    parser.add_argument("--output", type=Path, default=Path("docs/capabilities.md"), help="where the page goes")
    arguments = parser.parse_args(argv)
    text = page(load_table())
    if not arguments.check:
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        arguments.output.write_text(text, encoding="utf-8")
        return 0
    found = differences({arguments.output: text})
    if found:
        sys.stderr.write(f"{found}\nnot current: run `make generate`\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

"""Writes what is made from the capability table: the page of methods, backends and releases.

    python -m specdec_operator.runtimes.generate [--check] [--output docs/capabilities.md]

`--check` writes nothing: it prints how the file differs from what would be written, and exits 1 if it does.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from specdec_operator.api.generated_files import generator_parser, write_or_check
from specdec_operator.runtimes.capabilities import page
from specdec_operator.runtimes.table import load_table

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Write or check the page.

    Returns:
        1 if `--check` finds a difference, else 0.
    """
    parser = generator_parser("specdec_operator.runtimes.generate", __doc__)
    parser.add_argument("--output", type=Path, default=Path("docs/capabilities.md"), help="where the page goes")
    arguments = parser.parse_args(argv)
    return write_or_check({arguments.output: page(load_table())}, check=arguments.check)


if __name__ == "__main__":
    sys.exit(main())

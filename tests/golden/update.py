"""`python -m tests.golden.update [--check]`: write the golden manifests of the examples, or say which differ."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from tests.golden.manifests import EXAMPLES, HOW_TO_UPDATE, golden_file, golden_text

if TYPE_CHECKING:
    from pathlib import Path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a file differs")
    check = parser.parse_args().check
    stale = [example for example in EXAMPLES if _read(golden_file(example)) != golden_text(example)]
    for example in stale:
        sys.stdout.write(f"{golden_file(example)}: {f'differs; {HOW_TO_UPDATE}' if check else 'written'}\n")
        if not check:
            golden_file(example).write_text(golden_text(example), encoding="utf-8")
    return int(check and bool(stale))


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8") if file.is_file() else ""


if __name__ == "__main__":
    sys.exit(main())

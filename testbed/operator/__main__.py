"""Command line of the operator's image: `python -m testbed.operator build --output FILE`."""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
from pathlib import Path

from testbed.cluster.cache import cache_directory
from testbed.operator.image import build_operator_image
from testbed.runtime.errors import ImageBuildError

_INTERRUPTED = 130


def main(arguments: list[str]) -> int:
    """Build the image; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m testbed.operator", description="The operator's image.")
    commands = parser.add_subparsers(dest="command", required=True)
    build = commands.add_parser("build", help="build the image from the Dockerfile, as an OCI archive")
    build.add_argument("--output", type=Path, help="copy the archive here; without it, only its place is printed")
    chosen = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        image = build_operator_image(cache=cache_directory(), progress=_show)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except ImageBuildError as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    if chosen.output:
        chosen.output.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(image.archive, chosen.output)
    print(f"{image.reference} {image.digest} {chosen.output or image.archive}")
    return 0


def _show(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

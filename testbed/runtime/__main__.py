"""Command line of the simulator images' build: `python -m testbed.runtime build --output FILE`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from testbed.cluster.cache import cache_directory
from testbed.runtime.build import build_image, copy_archive
from testbed.runtime.errors import ImageBuildError


def main(arguments: list[str]) -> int:
    """Build the images; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m testbed.runtime", description="The simulator images.")
    commands = parser.add_subparsers(dest="command", required=True)
    build = commands.add_parser("build", help="build the images as one OCI archive")
    build.add_argument("--output", type=Path, help="copy the archive here; without it, only its place is printed")
    chosen = parser.parse_args(arguments)
    try:
        image = build_image(cache=cache_directory(), progress=lambda line: print(line, file=sys.stderr, flush=True))
    except ImageBuildError as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    if chosen.output:
        copy_archive(image, chosen.output)
    for reference, digest in image.digests.items():
        print(f"{reference} {digest} {chosen.output or image.archive}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

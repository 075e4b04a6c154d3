"""What upstream's own programs declare: the contracts of `tests/upstream`, which the images hold as well."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from testbed.runtime.simulator.errors import ParameterError
from testbed.runtime.simulator.release import TRITON_RELEASE

if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER: Final = "tests/upstream"
_ROOT: Final = Path(__file__).parents[3] / FOLDER


def declared(contract: str, environment: Mapping[str, str]) -> Mapping[str, Any]:
    """Return what a contract says of the release that the image plays.

    Raises:
        ParameterError: it says nothing of that release.
    """
    release = environment.get("NVIDIA_TRITON_SERVER_VERSION", TRITON_RELEASE)
    rows = yaml.load((_ROOT / contract).read_text(encoding="utf-8"), yaml.CSafeLoader)
    for row in rows:
        if any(release in source["at"] for source in row["sources"]):
            found: Mapping[str, Any] = row["declares"]
            return found
    raise ParameterError(f"{contract} says nothing of release {release}")


def option_parser(program: str, known: Mapping[str, Any], defaults: Mapping[str, object]) -> argparse.ArgumentParser:
    """Return the parser of a program's options.

    Args:
        program: its name, for messages.
        known: what its contract declares.
        defaults: of options that the stand-in reads when they are not given.
    """
    parser = argparse.ArgumentParser(prog=program, allow_abbrev=False)
    for name, kind in known["options"].items():
        parser.add_argument(
            f"--{name}",
            type=int if kind == "integer" else str,
            choices=kind if isinstance(kind, list) else None,
            required=name in known["required"],
            default=defaults.get(name),
        )
    for name in known["switches"]:
        parser.add_argument(f"--{name}", action="store_true")
    return parser

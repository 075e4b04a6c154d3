"""What upstream's own programs declare: the contracts of `tests/upstream`, which the images hold as well."""

from __future__ import annotations

import argparse
import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml
from packaging.version import InvalidVersion, Version

from testbed.runtime.simulator.errors import ParameterError
from testbed.runtime.simulator.release import TRITON_RELEASE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Declared = Mapping[str, Any]

FOLDER: Final = "tests/upstream"
_ROOT: Final = Path(__file__).parents[3] / FOLDER


def played_release(environment: Mapping[str, str]) -> str:
    """Return the release of Triton that the image plays."""
    return environment.get("NVIDIA_TRITON_SERVER_VERSION", TRITON_RELEASE)


def declared(contract: str, environment: Mapping[str, str]) -> Declared:
    """Return what a contract says of the release that the image plays.

    Raises:
        ParameterError: it says nothing of that release.
    """
    release = played_release(environment)
    for row in _rows(contract):
        if any(release in source["at"] for source in row["sources"]):
            found: Declared = row["declares"]
            return found
    raise ParameterError(f"{contract} says nothing of release {release}")


def declared_up_to(contract: str, version: str) -> Sequence[Declared]:
    """What a contract's rows up to a version of a runtime, or a release of Triton, say, oldest first.

    Of one that is not listed it says what it does of the one before it.

    Raises:
        ParameterError: the version is none, or older than all that are known.
    """
    wanted, rows = parsed(version), [(_version(row["sources"]), row["declares"]) for row in _rows(contract)]
    found = [declares for since, declares in rows if since <= wanted]
    if not found:
        raise ParameterError(f"{version} is not known here; the oldest is {rows[0][0]}")
    return found


def parsed(version: str) -> Version:
    """A version by its numbers; NVIDIA's builds say more after a plus sign.

    Raises:
        ParameterError: it is none.
    """
    try:
        return Version(version.partition("+")[0])
    except InvalidVersion as problem:
        raise ParameterError(f"{version!r} is not a version; give one such as 0.15.1") from problem


def fields(rows: Sequence[Declared], section: str) -> dict[str, str]:
    """The fields of a section, with the kind of their values, such as `int`, `list` or `any`."""
    known: dict[str, str] = {}
    for row in rows:
        known |= {name: kind for kind, names in row.get(section, {}).items() for name in names}
        known = {name: kind for name, kind in known.items() if name not in row.get(f"{section}_gone", ())}
    return known


def newest(rows: Sequence[Declared], key: str) -> Any:
    """The newest value of a key that rows repeat whole; None if there is none."""
    return next((row[key] for row in reversed(rows) if key in row), None)


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


@functools.cache
def _rows(contract: str) -> Sequence[Declared]:
    rows: Sequence[Declared] = yaml.load((_ROOT / contract).read_text(encoding="utf-8"), yaml.CSafeLoader)
    return rows


def _version(sources: Sequence[Declared]) -> Version:
    """The lowest version that a row speaks of: `v1.0.0 of 2025-09-24` and `r25.01 of …` name one, a commit does not."""
    tags = [str(at).partition(" ")[0] for source in sources for at in source["at"].values()]
    return min(Version(tag[1:]) for tag in tags if tag[0] in "vr")

"""Fields by the kind of their values, put together from rows that each say what came and what went."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_PYTHON: Final[Mapping[str, tuple[type, ...]]] = {
    "int": (int,),
    "bool": (bool,),
    "float": (int, float),
    "str": (str,),
    "list": (list,),
    "object": (dict,),
}


def fields(declared: Sequence[Mapping[str, Any]], section: str) -> dict[str, str]:
    """The kind of each field of a section, by what rows declare of it, oldest first."""
    known: dict[str, str] = {}
    for row in declared:
        known |= by_kind(row.get(section, {}))
        for name in row.get(f"{section}_gone", ()):
            known.pop(name, None)
    return known


def by_kind(groups: Mapping[str, Any]) -> dict[str, str]:
    """Fields with their kind, of a mapping that lists them by kind."""
    return {name: kind for kind in (*_PYTHON, "any") for name in groups.get(kind, ())}


def misfits(given: Mapping[str, Any], known: Mapping[str, str]) -> Iterator[str]:
    """What is wrong with the given fields: unknown, or of another kind."""
    for name, value in given.items():
        kind = known.get(name)
        if kind is None:
            yield f"{name} is unknown"
        elif kind != "any" and type(value) not in _PYTHON[kind]:
            yield f"{name} is {kind}, not {value!r}"

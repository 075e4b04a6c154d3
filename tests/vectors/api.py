"""The vectors of api.yaml: objects, and whether the API refuses them."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specdec_operator.api.yaml_text import read_yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

Document = dict[str, Any]


@dataclass(frozen=True)
class Refusal:
    """A refusal that must be said: at this path, with this fragment, and with that one by the API server."""

    path: str
    message: str
    server: str


@dataclass(frozen=True)
class Vector:
    """An object and what must be said of it; nothing if it must be taken."""

    name: str
    document: Document
    refused_by: tuple[Refusal, ...]


def vectors() -> list[Vector]:
    content = read_yaml((Path(__file__).parent / "api.yaml").read_text(encoding="utf-8"))
    listed = [_vector(content["bases"], entry) for entry in content["vectors"]]
    return [*listed, *(vector for bound in content["bounds"] for vector in _bound(content["bases"], bound))]


def _vector(bases: dict[str, Document], entry: Document) -> Vector:
    if ("accepted" in entry) == ("refused_by" in entry):
        raise ValueError(f"{entry['name']}: say either accepted or refused_by")
    refusals = tuple(
        Refusal(said["path"], said["message"], said.get("server", said["message"]))
        for said in entry.get("refused_by", [])
    )
    return Vector(entry["name"], _document(bases, entry), refusals)


def _bound(bases: dict[str, Document], bound: Document) -> Iterator[Vector]:
    path, least, greatest = bound["path"], bound["least"], bound["greatest"]
    below = Refusal(path, f"must be at least {least}", f"greater than or equal to {least}")
    above = Refusal(path, f"must be at most {greatest}", f"less than or equal to {greatest}")
    cases: list[tuple[int, tuple[Refusal, ...]]] = [
        (least - 1, (below,)),
        (least, ()),
        (greatest, ()),
        (greatest + 1, (above,)),
    ]
    for value, refused_by in cases:
        entry = {**bound, "set": {**bound.get("set", {}), path: value}}
        yield Vector(f"{path} of {value}", _document(bases, entry), refused_by)


def _document(bases: dict[str, Document], entry: Document) -> Document:
    document = copy.deepcopy(bases[entry["of"]])
    for path in entry.get("remove", []):
        *above, last = path.split(".")
        _inside(document, above).pop(last)
    for path, value in entry.get("set", {}).items():
        *above, last = path.split(".")
        _inside(document, above)[last] = _expanded(value)
    return document


def _inside(document: Document, names: list[str]) -> Document:
    for name in names:
        document = document.setdefault(name, {})
    return document


def _expanded(value: Any) -> Any:
    match value:
        case {"$text": [letter, times]}:
            return str(letter) * times
        case {"$numbers": count}:
            return list(range(count))
        case {"$keys": count}:
            return {f"key-{index}": "a" for index in range(count)}
        case {"$times": [element, times]}:
            return [element] * times
        case dict():
            return {name: _expanded(part) for name, part in value.items()}
        case _:
            return value

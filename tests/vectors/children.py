"""The values of children.yaml: specs whose fields are copied into pods, claims and Services."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from tests.unit.specs import DRAFT_TARGET

if TYPE_CHECKING:
    from collections.abc import Iterator

Json = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A model with one of the values.

    Attributes:
        name: Path and value, shortened.
    """

    name: str
    document: Json


def cases() -> list[Case]:
    """A model for each value."""
    # Not libyaml's loader: the values hold characters that it refuses.
    listed = yaml.safe_load((Path(__file__).parent / "children.yaml").read_text(encoding="utf-8"))
    return [case for entry in listed for case in _cases(entry["path"], entry["values"])]


def _cases(path: str, values: list[Any]) -> Iterator[Case]:
    for index, value in enumerate(values):
        spec = copy.deepcopy(DRAFT_TARGET)
        *above, last = path.split(".")
        inside = spec
        for step in above:
            inside = inside.setdefault(step, {})
        inside[last] = _expanded(value)
        document = {
            "apiVersion": "specdec.dev/v1alpha1",
            "kind": "SpeculativeModel",
            "metadata": {"name": "pair", "namespace": "default"},
            "spec": spec,
        }
        yield Case(f"{path}-{index}-{value}"[:60], document)


def _expanded(value: Any) -> Any:
    match value:
        case {"$text": [letter, times]}:
            return str(letter) * times
        case {"$join": parts}:
            return "".join(_expanded(part) for part in parts)
        case {"$key": [*parts, content]}:
            return {"".join(_expanded(part) for part in parts): content}
        case dict():
            return {name: _expanded(part) for name, part in value.items()}
        case list():
            return [_expanded(part) for part in value]
        case _:
            return value

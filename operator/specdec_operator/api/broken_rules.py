"""The rules that an object breaks, also when other parts of it are not even well formed."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import BaseModel

from specdec_operator.api.model import ApiModel
from specdec_operator.api.tree import Location, model_in, parts_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from specdec_operator.api.rules import Rule


def broken_rules(
    model: type[BaseModel], document: dict[str, Any], spoilt: frozenset[Location]
) -> Iterator[tuple[Rule, str]]:
    """Evaluate the twin of every rule in an object.

    Args:
        model: The object's kind.
        document: The object, by the names that users write.
        spoilt: Where it is not well formed; a rule that reads such a field is passed over.

    Yields:
        Each broken rule with the path of the field that it speaks of.
    """
    for part, path in _parts(_read(model, document, (), spoilt), ""):
        for rule in part.RULES:
            if not _holds(rule, part):
                yield rule, f"{path}{rule.field}".removeprefix(".")


def _holds(rule: Rule, part: ApiModel) -> bool:
    try:
        return rule.holds(part)
    except AttributeError:  # a spoilt field, which the model was read without
        return True


def _parts(model: BaseModel, path: str) -> Iterator[tuple[ApiModel, str]]:
    if isinstance(model, ApiModel):
        yield model, path
    for field in _fields(type(model)):
        if field.model is None:
            continue
        below = f"{path}.{field.written}".removeprefix(".")
        for part, place in parts_of(vars(model).get(field.name), below):
            if isinstance(part, BaseModel):
                yield from _parts(part, place)


class _Field(NamedTuple):
    name: str
    written: str
    model: type[BaseModel] | None


@functools.cache
def _fields(model: type[BaseModel]) -> tuple[_Field, ...]:
    return tuple(
        _Field(name, field.alias or name, model_in(field.annotation)) for name, field in model.model_fields.items()
    )


def _read(model: type[BaseModel], value: dict[str, Any], location: Location, spoilt: frozenset[Location]) -> BaseModel:
    parts: dict[str, Any] = {}
    unread = set()
    for field in _fields(model):
        place = (*location, field.written)
        if spoilt and _is_spoilt(field, place, spoilt):
            unread.add(field.name)
        elif field.written in value:
            parts[field.name] = _part(field, value[field.written], place, spoilt)
    made = model.model_construct(**parts)
    for name in unread:
        vars(made).pop(name, None)
    return made


def _is_spoilt(field: _Field, place: Location, spoilt: frozenset[Location]) -> bool:
    if place in spoilt:
        return True
    return field.model is None and any(location[: len(place)] == place for location in spoilt)


def _part(field: _Field, value: Any, place: Location, spoilt: frozenset[Location]) -> Any:
    if field.model is None:
        return value
    if isinstance(value, list):
        return [
            _read(field.model, part, (*place, index), spoilt)
            for index, part in enumerate(value)
            if isinstance(part, dict)
        ]
    return _read(field.model, value, place, spoilt)

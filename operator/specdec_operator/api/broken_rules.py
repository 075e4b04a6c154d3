"""The rules that an object breaks, also when other parts of it are not even well formed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from specdec_operator.api.model import ApiModel
from specdec_operator.api.tree import Location, model_in, parts_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic.fields import FieldInfo

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
    for name, field in type(model).model_fields.items():
        below = f"{path}.{field.alias or name}".removeprefix(".")
        for part, place in parts_of(vars(model).get(name), below):
            if isinstance(part, BaseModel):
                yield from _parts(part, place)


def _read(model: type[BaseModel], value: dict[str, Any], location: Location, spoilt: frozenset[Location]) -> BaseModel:
    parts: dict[str, Any] = {}
    unread = set()
    for name, field in model.model_fields.items():
        place = (*location, field.alias or name)
        if _is_spoilt(field, place, spoilt):
            unread.add(name)
        elif place[-1] in value:
            parts[name] = _part(field, value[place[-1]], place, spoilt)
    made = model.model_construct(**parts)
    for name in unread:
        vars(made).pop(name, None)
    return made


def _is_spoilt(field: FieldInfo, place: Location, spoilt: frozenset[Location]) -> bool:
    if place in spoilt:
        return True
    return model_in(field.annotation) is None and any(location[: len(place)] == place for location in spoilt)


def _part(field: FieldInfo, value: Any, place: Location, spoilt: frozenset[Location]) -> Any:
    model = model_in(field.annotation)
    if model is None:
        return value
    if isinstance(value, list):
        return [
            _read(model, part, (*place, index), spoilt) for index, part in enumerate(value) if isinstance(part, dict)
        ]
    return _read(model, value, place, spoilt)

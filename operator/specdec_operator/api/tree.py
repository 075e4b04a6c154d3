"""Finding one's way in the models: which model, list or map a field holds."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic.fields import FieldInfo

Location = tuple[int | str, ...]
"""Where a value lies in a document, as pydantic says it: names that users write, and list indexes."""


def fields_of(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """A model's fields by the names that users write."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def model_in(annotation: Any) -> type[BaseModel] | None:
    """The model that a type is, or that its list holds; None if there is none."""
    for member in _members(annotation):
        if isinstance(member, type) and issubclass(member, BaseModel):
            return member
        if get_origin(member) is list:
            return model_in(get_args(member)[0])
    return None


def is_map(annotation: Any) -> bool:
    """Whether a type is a map with keys of the user's own."""
    return any(get_origin(member) is dict for member in _members(annotation))


def _members(annotation: Any) -> Iterator[Any]:
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _members(get_args(annotation)[0])
    elif origin in (Union, types.UnionType):
        for member in get_args(annotation):
            yield from _members(member)
    else:
        yield annotation


def parts_of(value: Any, path: str) -> Iterator[tuple[Any, str]]:
    """A field's value, or each element if it is a list, with its path."""
    if isinstance(value, list):
        yield from ((element, f"{path}[{index}]") for index, element in enumerate(value))
    else:
        yield value, path

"""Frozen dataclasses as strict JSON: camelCase keys, unknown and missing keys refused with their path."""

import dataclasses
import functools
import json
import types
from collections.abc import Mapping
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from specdec_operator.pod.errors import InvalidInput

DocumentType = TypeVar("DocumentType", bound="Document")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Document:
    """The base of every program's input.

    Fields may be str, int, float, bool, Any (any JSON), a Document, tuple[X, ...], Mapping[str, X] or X | None.
    """

    @classmethod
    def from_json(cls: type[DocumentType], text: str) -> DocumentType:  # noqa: PYI019 - typing.Self is of Python 3.11
        """Read the document.

        Raises:
            InvalidInput: the text is no JSON, or a key is unknown, missing or of the wrong type.
        """
        try:
            value = json.loads(text)
        except json.JSONDecodeError as error:
            raise InvalidInput(f"the input is not JSON: {error}") from error
        return _document(cls, value, "input")

    def to_json(self) -> str:
        """Write the document, canonically: equal documents give equal text."""
        return _CANONICAL.encode(self)


@functools.cache
def camel_case(name: str) -> str:
    """The key on the wire of a field."""
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)


def _plain(value: object) -> Any:
    """What the encoder asks about: what is no plain JSON itself."""
    if isinstance(value, Document):
        return {camel_case(field.name): getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{value!r} is no JSON")


_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=_plain)


def _document(kind: type[DocumentType], value: object, path: str) -> DocumentType:
    if not isinstance(value, dict):
        raise InvalidInput(f"{path} must be an object, not {_kind_of(value)}")
    fields = {camel_case(field.name): field for field in dataclasses.fields(kind)}
    unknown = sorted(set(value) - set(fields))
    if unknown:
        raise InvalidInput(f"{path} has unknown keys {', '.join(unknown)}; the keys are {', '.join(sorted(fields))}")
    missing = sorted(key for key, field in fields.items() if key not in value and _is_required(field))
    if missing:
        raise InvalidInput(f"{path} lacks {', '.join(missing)}")
    hints = get_type_hints(kind)
    given = {
        field.name: _typed(hints[field.name], value[key], f"{path}.{key}")
        for key, field in fields.items()
        if key in value
    }
    return kind(**given)


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _typed(hint: Any, value: object, path: str) -> Any:
    if hint is Any:
        return value
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _optional(arguments, value, path)
    if origin is tuple:
        items = _expect(list, value, path)
        return tuple(_typed(arguments[0], item, f"{path}[{index}]") for index, item in enumerate(items))
    if origin is not None and issubclass(origin, Mapping):
        entries = _expect(dict, value, path)
        return {key: _typed(arguments[1], item, f"{path}.{key}") for key, item in entries.items()}
    return _single(hint, value, path)


def _single(hint: Any, value: object, path: str) -> Any:
    if issubclass(hint, Document):
        return _document(hint, value, path)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return _expect(hint, value, path)


def _optional(arguments: tuple[Any, ...], value: object, path: str) -> Any:
    if value is None:
        return None
    (kind,) = (argument for argument in arguments if argument is not type(None))
    return _typed(kind, value, path)


def _expect(kind: Any, value: object, path: str) -> Any:
    # bool is an int to isinstance, but not to a reader of the input
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise InvalidInput(f"{path} must be {_NAMES[kind]}, not {_kind_of(value)}")
    return value


def _kind_of(value: object) -> str:
    return _NAMES.get(type(value), "null" if value is None else type(value).__name__)


_NAMES: Mapping[type, str] = {
    str: "a string",
    bool: "true or false",
    int: "an integer",
    float: "a number",
    list: "a list",
    dict: "an object",
}

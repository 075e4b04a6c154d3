"""Editing Triton's model configuration: placeholders, proto fields and string parameters."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from specdec_operator.pod.textproto import EnumValue, Field, Message, Placeholder, TextProtoError, parse_scalar

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_ENUM_FIELDS = frozenset({"kind", "data_type", "format"})


@dataclass(frozen=True)
class Variables:
    """The placeholders of a configuration: `fields` stand for a proto value, `texts` inside a string."""

    fields: frozenset[str]
    texts: frozenset[str]


def variables(message: Message) -> Variables:
    """The placeholders that a configuration holds."""
    fields: set[str] = set()
    texts: set[str] = set()
    _collect(message, fields, texts)
    return Variables(frozenset(fields), frozenset(texts))


def fill(message: Message, values: Mapping[str, str]) -> Message:
    """Put values in the place of placeholders; those without a value stay.

    Raises:
        TextProtoError: a value that stands for a proto field is no number, boolean or enumeration value.
    """
    filled = _filled(message, values)
    if not isinstance(filled, Message):
        raise TextProtoError("a configuration must be a message")
    return filled


def set_field(message: Message, path: str, value: Any) -> Message:
    """Set the field at a dotted path to JSON, in the place of what is there.

    Lists become repeated fields, objects messages; strings under `kind`, `data_type` and `format` are enumerations.

    Raises:
        TextProtoError: the path leads through something else than one message.
    """
    name, _, rest = path.partition(".")
    if rest:
        present = message.values(name)
        if len(present) > 1 or (present and not isinstance(present[0], Message)):
            raise TextProtoError(f"{name} is no single message, {path} can't be set")
        return _replaced(message, name, set_field(present[0] if present else Message(), rest, value))
    return _replaced(message, name, from_json(name, value))


def get_field(message: Message, path: str) -> Any:
    """The value at a dotted path: a tuple if it is repeated, None if it isn't there."""
    name, _, rest = path.partition(".")
    found = message.values(name)
    if rest:
        return get_field(found[0], rest) if len(found) == 1 and isinstance(found[0], Message) else None
    is_list = any(field.name == name and isinstance(field.value, tuple) for field in message.fields)
    return found if len(found) > 1 or is_list else next(iter(found), None)


def parameters(message: Message) -> dict[str, str]:
    """The string parameters."""
    found: dict[str, str] = {}
    for entry in message.values("parameters"):
        key, value = _parameter(entry)
        if key is not None and value is not None:
            found[key] = value
    return found


def inputs(message: Message) -> dict[str, str]:
    """The inputs with their types, as in TYPE_INT32."""
    found: dict[str, str] = {}
    for entry in message.values("input"):
        if isinstance(entry, Message):
            datatype = get_field(entry, "data_type")
            found[str(get_field(entry, "name"))] = datatype.name if isinstance(datatype, EnumValue) else ""
    return found


def set_parameter(message: Message, key: str, value: str) -> Message:
    """Add a string parameter, or replace it."""
    others = tuple(entry for entry in message.values("parameters") if _parameter(entry)[0] != key)
    new = Message((Field("key", key), Field("value", Message((Field("string_value", value),)))))
    without = tuple(field for field in message.fields if field.name != "parameters")
    return Message((*without, *(Field("parameters", entry) for entry in (*others, new))))


def from_json(name: str, value: Any) -> Any:
    """JSON as the value of the field `name`."""
    if isinstance(value, Mapping):
        return Message(tuple(Field(key, from_json(key, item)) for key, item in value.items()))
    if isinstance(value, (list, tuple)):
        return tuple(from_json(name, item) for item in value)
    if isinstance(value, str) and name in _ENUM_FIELDS:
        return EnumValue(value)
    return value


def _parameter(entry: Any) -> tuple[str | None, str | None]:
    if not isinstance(entry, Message):
        return None, None
    key, value = get_field(entry, "key"), get_field(entry, "value.string_value")
    return key if isinstance(key, str) else None, value if isinstance(value, str) else None


def _replaced(message: Message, name: str, value: Any) -> Message:
    fields: list[Field] = []
    placed = False
    for field in message.fields:
        if field.name != name:
            fields.append(field)
        elif not placed:
            fields.append(Field(name, value))
            placed = True
    return Message(tuple(fields) if placed else (*fields, Field(name, value)))


def _collect(value: Any, fields: set[str], texts: set[str]) -> None:
    if isinstance(value, Placeholder):
        fields.add(value.variable)
    elif isinstance(value, str):
        texts.update(_VARIABLE.findall(value))
    elif isinstance(value, Message):
        for field in value.fields:
            _collect(field.value, fields, texts)
    elif isinstance(value, tuple):
        for item in value:
            _collect(item, fields, texts)


def _filled(value: Any, values: Mapping[str, str]) -> Any:
    if isinstance(value, Placeholder):
        return parse_scalar(values[value.variable]) if value.variable in values else value
    if isinstance(value, str):
        return _VARIABLE.sub(lambda match: values.get(match.group(1), match.group()), value)
    if isinstance(value, Message):
        return Message(tuple(replace(field, value=_filled(field.value, values)) for field in value.fields))
    if isinstance(value, tuple):
        return tuple(_filled(item, values) for item in value)
    return value

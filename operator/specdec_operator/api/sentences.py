"""What pydantic finds, said in sentences that name the remedy."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from specdec_operator.api.near_names import nearest, places_of, same
from specdec_operator.api.tree import Location, fields_of, is_map, model_in
from specdec_operator.api.v1alpha1.patterns import words_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pydantic import BaseModel
    from pydantic.fields import FieldInfo

_KEY: Final = "[key]"
_LONGEST_QUOTE: Final = 60


def place_of(model: type[BaseModel], location: Location) -> str:
    """Write a location as the API server does: `spec.pod.tolerations[0].key`, `spec.pod.labels[app]`."""
    if location and location[-1] == _KEY:
        location = location[:-2]
    place = ""
    for step, field in _walk(model, location):
        indexed = isinstance(step, int) or (field is not None and is_map(field.annotation))
        place += f"[{step}]" if indexed else f".{step}"
    return place.removeprefix(".")


def sentence_of(
    model: type[BaseModel], location: Location, error: Mapping[str, Any], *, written: str | None = None
) -> str:
    """Say one error of pydantic in a sentence with its remedy.

    Args:
        written: The characters of a scalar that stands in a file without quotes.
    """
    if error["type"] == "string_type":
        return _text(error["input"], written)
    if location[-1] == _KEY:
        return f"each {_SENTENCES[error['type']](error.get('ctx', {}), error['input']).replace('must', 'key must', 1)}"
    if error["type"] == "missing":
        return _missing(model, location)
    if error["type"] == "extra_forbidden":
        return _unknown(model, location)
    speak = _SENTENCES.get(error["type"])
    return speak(error.get("ctx", {}), error["input"]) if speak else str(error["msg"])


def _walk(model: type[BaseModel] | None, location: Location) -> Iterator[tuple[int | str, FieldInfo | None]]:
    """Each step of a location, with the list or map field that it is an entry of."""
    container: FieldInfo | None = None
    for step in location:
        yield step, container
        if container is None and model is not None and isinstance(step, str):
            field = fields_of(model).get(step)
            model = model_in(field.annotation) if field else None
            container = field if field and is_map(field.annotation) else None
        elif container is not None:
            container = None


def _model_around(model: type[BaseModel], location: Location) -> type[BaseModel] | None:
    around: type[BaseModel] | None = model
    for step in location[:-1]:
        if isinstance(step, str):
            field = fields_of(around).get(step) if around else None
            around = model_in(field.annotation) if field else None
    return around


def _missing(model: type[BaseModel], location: Location) -> str:
    around = _model_around(model, location)
    field = fields_of(around).get(str(location[-1])) if around else None
    said = " ".join((field.description or "").split()) if field else ""
    return f"required, but missing. {said}" if said else "required, but missing"


def _unknown(model: type[BaseModel], location: Location) -> str:
    around, name = _model_around(model, location), str(location[-1])
    known = [known for known in fields_of(around) if known not in ("apiVersion", "kind")] if around else []
    places = places_of(model, location)
    if not same(name, known) and places:
        return f"unknown field here; it belongs at {' or '.join(places)}"
    if near := nearest(name, known):
        return f"unknown field; did you mean {near}?"
    return f"unknown field; remove it. Known here: {', '.join(known)}"


def _quoted(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}…"


def _kind_of(value: Any) -> str:
    names = {bool: "true or false", int: "a number", float: "a number", str: "text", list: "a list", dict: "a map"}
    return names.get(type(value), "nothing" if value is None else type(value).__name__)


def _wanted(what: str) -> Callable[[Mapping[str, Any], Any], str]:
    return lambda _context, value: f"must be {what}; it is {_kind_of(value)} ({_quoted(value)})"


def _text(value: Any, written: str | None) -> str:
    if not isinstance(value, int | float):
        return f"must be text; it is {_kind_of(value)}"
    read = json.dumps(value)
    shown = read if written is None else written
    what = read if isinstance(value, bool) else f"the number {read}"
    return f'must be text, and YAML reads {shown} as {what}; quote it: "{shown}"'


def _one_of(context: Mapping[str, Any], value: Any) -> str:
    options = re.findall(r"'([^']*)'", context["expected"])
    near = nearest(value, options) if isinstance(value, str) else None
    remedy = f"; did you mean {near}?" if near else ""
    return f"must be one of {context['expected'].replace(' or ', ', ')}; it is {_quoted(value)}{remedy}"


_SENTENCES: Final[Mapping[str, Callable[[Mapping[str, Any], Any], str]]] = {
    "int_type": _wanted("a whole number"),
    "int_from_float": _wanted("a whole number"),
    "bool_type": _wanted("true or false"),
    "list_type": _wanted("a list"),
    "dict_type": _wanted("a map"),
    "model_type": _wanted("a map of fields"),
    "model_attributes_type": _wanted("a map of fields"),
    "string_too_short": lambda context, _: f"must have at least {context['min_length']} characters",
    "string_too_long": lambda context, value: (
        f"must have at most {context['max_length']} characters; it has {len(value)}"
    ),
    "too_short": lambda context, _: f"must have at least {context['min_length']} entries",
    "too_long": lambda context, value: f"must have at most {context['max_length']} entries; it has {len(value)}",
    "greater_than_equal": lambda context, value: f"must be at least {context['ge']}; it is {value}",
    "less_than_equal": lambda context, value: f"must be at most {context['le']}; it is {value}",
    "literal_error": _one_of,
    "string_pattern_mismatch": lambda context, value: f"must be {words_of(context['pattern'])}; it is {_quoted(value)}",
    "duplicate": lambda context, _: f"duplicate value {context['value']}: each may occur once",
}

"""What a served schema lacks of the operator's own. Pure: two structural schemas, or their OpenAPI, in; words out.

A served schema that knows more is no gap. Only what would be dropped or refused counts: fields, and values of an enum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Schema = dict[str, Any]

PARTS: Final = ("spec", "status")
"""What a kind's schema is compared in; the rest is the API server's own."""
_OPEN: Final = "x-kubernetes-preserve-unknown-fields"
_NO_PLACE: Final = object()


def gaps(own: Mapping[str, Any], served: Mapping[str, Any]) -> tuple[str, ...]:
    """What the served schema of a kind lacks: paths of fields, and ``path: VALUE`` for values of an enum."""
    return tuple(
        gap
        for part in PARTS
        if part in own.get("properties", {})
        for gap in _missing(own["properties"][part], served.get("properties", {}).get(part), part)
    )


def _missing(own: Mapping[str, Any], served: Mapping[str, Any] | None, path: str) -> Iterator[str]:
    if served is None:
        yield path
        return
    if served.get(_OPEN):
        return
    known = served.get("enum")
    if known is not None:
        yield from (f"{path}: {value}" for value in own.get("enum", ()) if value not in known)
    for name, part in own.get("properties", {}).items():
        yield from _missing(part, served.get("properties", {}).get(name), f"{path}.{name}")
    for keyword, mark in (("items", "[]"), ("additionalProperties", "[]")):
        if isinstance(own.get(keyword), dict):
            yield from _missing(own[keyword], served.get(keyword), f"{path}{mark}")


def fitted(value: Any, served: Mapping[str, Any]) -> Any:
    """A value without what the served schema has no place for; None if nothing of it has.

    An object that loses a field that it must have goes as a whole, and so does an item of a list.
    """
    found = _fitted(value, served)
    return None if found is _NO_PLACE else found


def _fitted(value: Any, served: Mapping[str, Any]) -> Any:
    if served.get(_OPEN):
        return value
    if isinstance(value, dict):
        return _fitted_object(value, served)
    if isinstance(value, list):
        items = [_fitted(item, served.get("items") or {}) for item in value]
        return [item for item in items if item is not _NO_PLACE]
    return _NO_PLACE if "enum" in served and value not in served["enum"] else value


def _fitted_object(value: Mapping[str, Any], served: Mapping[str, Any]) -> Any:
    fields, others = served.get("properties") or {}, served.get("additionalProperties")
    kept: Schema = {}
    for name, part in value.items():
        schema = fields.get(name, others if isinstance(others, dict) else None)
        inner = _NO_PLACE if schema is None else _fitted(part, schema)
        if inner is not _NO_PLACE:
            kept[name] = inner
    return _NO_PLACE if set(served.get("required") or ()) - set(kept) else kept

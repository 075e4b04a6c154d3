"""Structural schemas: what the API server takes in a CustomResourceDefinition.

References are inlined, patterns become rules that speak in words, and whatever the API server would refuse, prune or
not bound is an error while generating.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from specdec_operator.api.errors import UnboundedError, UnsupportedConstructError
from specdec_operator.api.v1alpha1.patterns import words_of

if TYPE_CHECKING:
    from collections.abc import Mapping

Schema = dict[str, Any]

_KEYWORDS: Final = (
    "type",
    "description",
    "default",
    "enum",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "required",
    "properties",
    "items",
    "additionalProperties",
    "anyOf",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
)
_TYPES: Final = ("string", "integer", "boolean", "object", "array")
_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
_INT_OR_STRING: Final = "x-kubernetes-int-or-string"
_DEEPEST: Final = 16


def structural(schema: Mapping[str, Any], definitions: Mapping[str, Any], path: str) -> Schema:
    """Make a drawn schema structural.

    Args:
        schema: As `model_schema.draw` has it.
        definitions: What its references mean.
        path: The field that it describes, for errors.

    Raises:
        UnsupportedConstructError: The API server has no place for it.
        UnboundedError: A string, list or map has no upper bound.
    """
    made = _Maker(definitions).make(schema, path)
    return {keyword: made[keyword] for keyword in _KEYWORDS if keyword in made}


@dataclass(frozen=True)
class _Maker:
    definitions: Mapping[str, Any]

    def make(self, drawn: Mapping[str, Any], path: str) -> Schema:
        if path.count(".") > _DEEPEST:
            raise UnsupportedConstructError(f"{path}: a type holds itself; structural schemas cannot")
        schema = self._resolved(drawn)
        schema.pop("title", None)
        if "description" in schema:
            schema["description"] = _flowing(schema["description"])
        made = self._shaped(schema, path)
        _check(made, path)
        return {keyword: made[keyword] for keyword in _KEYWORDS if keyword in made}

    def _resolved(self, drawn: Mapping[str, Any]) -> Schema:
        if "$ref" not in drawn:
            return dict(drawn)
        siblings = {keyword: value for keyword, value in drawn.items() if keyword != "$ref"}
        return {**self.definitions[drawn["$ref"].removeprefix("#/$defs/")], **siblings}

    def _shaped(self, schema: Schema, path: str) -> Schema:
        match schema.get("type"):
            case "object" if schema.get(_PRESERVE):
                schema.pop("additionalProperties", None)
                return schema
            case "object" if "properties" in schema:
                return self._object(schema, path)
            case "object":
                return self._map(schema, path)
            case "array":
                return {**schema, "items": self.make(schema.get("items", {}), f"{path}[]")}
            case "string":
                return _int_or_string(schema) if schema.get(_INT_OR_STRING) else _worded(schema)
            case _:
                return schema

    def _object(self, schema: Schema, path: str) -> Schema:
        # Unknown fields are pruned, and refused by strict field validation; the keyword itself is forbidden here.
        schema.pop("additionalProperties", None)
        schema["properties"] = {
            name: self.make(part, f"{path}.{name}" if path else name) for name, part in schema["properties"].items()
        }
        return schema

    def _map(self, schema: Schema, path: str) -> Schema:
        keys = dict(schema.pop("propertyNames", {}))
        values = schema.pop("additionalProperties", None)
        for pattern, part in schema.pop("patternProperties", {}).items():
            keys["pattern"], values = pattern, part
        if not isinstance(values, dict):
            raise UnsupportedConstructError(f"{path}: a map needs typed values")
        made = {**schema, "additionalProperties": self.make(values, f"{path}[]")}
        rule = _key_rule(keys, path)
        return {**made, "x-kubernetes-validations": [*schema.get("x-kubernetes-validations", []), rule]}


def _flowing(text: str) -> str:
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def _worded(schema: Schema) -> Schema:
    if "pattern" not in schema:
        return schema
    pattern = schema.pop("pattern")
    rule = {"rule": f"self.matches(r'{pattern}')", "message": f"must be {words_of(pattern)}"}
    return {**schema, "x-kubernetes-validations": [*schema.get("x-kubernetes-validations", []), rule]}


def _int_or_string(schema: Schema) -> Schema:
    pattern = schema.pop("pattern")
    schema.pop("type")
    schema.pop("minLength", None)
    rule = {"rule": f"type(self) == int || self.matches(r'{pattern}')", "message": f"must be {words_of(pattern)}"}
    return {
        **schema,
        "minimum": 0,
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-validations": [rule],
    }


def _key_rule(keys: Mapping[str, Any], path: str) -> dict[str, str]:
    if "maxLength" not in keys:
        raise UnboundedError(f"{path}: the map's keys need a max_length")
    conditions = [f"size(key) <= {keys['maxLength']}"]
    words = f"keys must be at most {keys['maxLength']} characters"
    if "pattern" in keys:
        conditions.append(f"key.matches(r'{keys['pattern']}')")
        words = f"each key must be {words_of(keys['pattern'])}"
    return {"rule": f"self.all(key, {' && '.join(conditions)})", "message": words}


def _check(schema: Schema, path: str) -> None:
    unknown = sorted(set(schema) - set(_KEYWORDS))
    if unknown:
        raise UnsupportedConstructError(f"{path}: a structural schema has no {', '.join(unknown)}")
    if _INT_OR_STRING not in schema and schema.get("type") not in _TYPES:
        raise UnsupportedConstructError(f"{path}: the type {schema.get('type')} has no structural schema")
    limit = _limit_of(schema)
    if limit and limit not in schema:
        raise UnboundedError(f"{path}: give it a {limit}; everything unbounded is refused")


def _limit_of(schema: Schema) -> str:
    if schema.get("type") == "string":
        return "" if "enum" in schema else "maxLength"
    if schema.get("type") == "array":
        return "maxItems"
    return "maxProperties" if "additionalProperties" in schema else ""

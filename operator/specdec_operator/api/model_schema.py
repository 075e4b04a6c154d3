"""JSON schemas of the models, as pydantic draws them, but for what Kubernetes says in other words.

Still with `$ref`; `structural` makes the schema that the API server takes.
"""

from __future__ import annotations

import copy
import functools
import inspect
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from specdec_operator.api.errors import UnsupportedConstructError
from specdec_operator.api.model import ApiModel, StatusModel

if TYPE_CHECKING:
    from pydantic_core import core_schema

    from specdec_operator.api.rules import Rule


class ModelSchema(GenerateJsonSchema):
    """Draws optional fields as fields without default, literals as enums, and a model's rules beside its fields."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        """Draw `X | None` as X: an absent field is an unset one."""
        return self.generate_inner(schema["schema"])

    def literal_schema(self, schema: core_schema.LiteralSchema) -> JsonSchemaValue:
        """Draw literals, also a single one, as an enum of strings."""
        if not all(isinstance(value, str) for value in schema["expected"]):
            raise UnsupportedConstructError(f"only strings can be literals, not {schema['expected']}")
        return {"type": "string", "enum": list(schema["expected"])}

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        """Draw only defaults that say more than absence does."""
        inner = self.generate_inner(schema["schema"])
        default = schema.get("default")
        if isinstance(default, BaseModel):
            return {**inner, "default": _sparse(default)}
        if default is None or default in ("", [], {}, ()):
            return inner
        return {**inner, "default": default}

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """Draw a model with its docstring as description and its rules."""
        drawn = super().model_schema(schema)
        model = schema["cls"]
        drawn["description"] = inspect.cleandoc(model.__doc__ or "")
        if issubclass(model, ApiModel) and model.RULES:
            drawn["x-kubernetes-validations"] = [_validation(rule) for rule in model.RULES]
        if issubclass(model, StatusModel):
            for part in drawn.get("properties", {}).values():
                part.pop("default", None)
        return drawn

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002  the signature is pydantic's
        """Draw no titles: a field's name is its title."""
        return False


def _sparse(model: BaseModel) -> dict[str, Any]:
    return model.model_dump(by_alias=True, exclude_defaults=True, mode="json")


def _validation(rule: Rule) -> dict[str, str]:
    drawn = {"rule": rule.expression, "message": rule.message}
    if rule.field:
        drawn["fieldPath"] = rule.field
    if rule.reason != "FieldValueInvalid":
        drawn["reason"] = rule.reason
    return drawn


def draw(model: type[BaseModel]) -> JsonSchemaValue:
    """Draw a model and all that it holds.

    Raises:
        UnsupportedConstructError: A literal is no string.
    """
    return copy.deepcopy(_drawn(model))


@functools.lru_cache(maxsize=16)
def _drawn(model: type[BaseModel]) -> JsonSchemaValue:
    return model.model_json_schema(by_alias=True, mode="validation", schema_generator=ModelSchema)

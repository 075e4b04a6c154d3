"""The base of every API model: frozen, camelCase on the wire, described by its own docstrings."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from specdec_operator.api.rules import Rule


class ApiModel(BaseModel):
    """A part of an API object.

    Unknown fields are refused, as the API server's strict field validation does.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        use_attribute_docstrings=True,
    )

    RULES: ClassVar[tuple[Rule, ...]] = ()
    """The rules that span this model's fields."""

    # Code makes models by their names in Python; documents have the names of the definition alone, or a spec that the
    # API server refuses would be read here.

    @classmethod
    def model_validate(cls, obj: Any, *, by_name: bool | None = False, **options: Any) -> Self:
        """Read a document, by the names that users write.

        Raises:
            pydantic.ValidationError: It does not fit.
        """
        return super().model_validate(obj, by_name=by_name, **options)

    @classmethod
    def model_validate_json(
        cls, json_data: str | bytes | bytearray, *, by_name: bool | None = False, **options: Any
    ) -> Self:
        """Read a document in JSON, by the names that users write.

        Raises:
            pydantic.ValidationError: It does not fit.
        """
        return super().model_validate_json(json_data, by_name=by_name, **options)


class StatusModel(ApiModel):
    """A part of a status.

    Unknown fields are ignored: a status may have been written by a newer operator.
    """

    model_config = ConfigDict(extra="ignore")

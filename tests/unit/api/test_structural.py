from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from specdec_operator.api.errors import UnboundedError, UnsupportedConstructError
from specdec_operator.api.model import ApiModel
from specdec_operator.api.model_schema import draw
from specdec_operator.api.structural import Schema, structural
from specdec_operator.api.v1alpha1 import patterns

Name = Annotated[str, Field(max_length=9)]
Key = Annotated[str, Field(max_length=9, pattern=patterns.LABEL_KEY.expression)]


def made(annotation: Any, default: Any = ...) -> Schema:
    """The structural schema of a model's field of this type."""
    namespace = {"__annotations__": {"field": annotation}, "__module__": __name__}
    if default is not ...:
        namespace["field"] = default
    model: type[BaseModel] = type("Holder", (ApiModel,), namespace)
    drawn = draw(model)
    definitions = drawn.pop("$defs", {})
    part: Schema = structural(drawn, definitions, "")["properties"]["field"]
    return part


class Inner(ApiModel):
    """What is inside."""

    size: Annotated[int, Field(ge=1, le=3)] = 2


class Itself(ApiModel):
    """Holds itself."""

    child: Itself | None = None


@pytest.mark.parametrize(
    "annotation",
    [
        str,
        list[Name],
        dict[Name, Name],
        Annotated[dict[str, Name], Field(max_length=3)],
        Annotated[dict[Name, str], Field(max_length=3)],
        Annotated[list[str], Field(max_length=3)],
    ],
    ids=str,
)
def test_whatever_has_no_upper_bound_is_an_error(annotation: Any) -> None:
    with pytest.raises(UnboundedError):
        made(annotation)


@pytest.mark.parametrize(
    "annotation",
    [
        Any,
        Annotated[dict[Name, Any], Field(max_length=3)],
        Annotated[set[Name], Field(max_length=3)],
        tuple[Name, Name],
        Name | int,
        Annotated[int, Field(gt=1)],
        Itself,
    ],
    ids=str,
)
def test_whatever_has_no_structural_schema_is_an_error(annotation: Any) -> None:
    with pytest.raises(UnsupportedConstructError):
        made(annotation)


def test_an_error_names_the_field() -> None:
    with pytest.raises(UnboundedError, match=r"^field\[\]: give it a maxLength"):
        made(Annotated[list[str], Field(max_length=3)])


def test_a_literal_number_is_an_error() -> None:
    with pytest.raises(UnsupportedConstructError, match="only strings"):
        made(Literal[1])


def test_an_optional_field_is_its_type_without_null() -> None:
    assert made(Name | None, None) == {"type": "string", "maxLength": 9}


def test_a_single_literal_is_an_enum() -> None:
    assert made(Literal["a"]) == {"type": "string", "enum": ["a"]}


def test_a_pattern_becomes_a_rule_that_says_it_in_words() -> None:
    schema = made(Annotated[str, Field(max_length=9, pattern=patterns.SECRET_KEY.expression)])

    assert schema["x-kubernetes-validations"] == [
        {
            "rule": f"self.matches(r'{patterns.SECRET_KEY.expression}')",
            "message": f"must be {patterns.SECRET_KEY.words}",
        }
    ]


def test_no_pattern_is_left_for_the_api_server_to_print() -> None:
    assert "pattern" not in made(Key)


def test_a_maps_keys_are_held_by_a_rule() -> None:
    schema = made(Annotated[dict[Key, Name], Field(max_length=3)])

    assert schema["x-kubernetes-validations"][0]["rule"].startswith("self.all(key, size(key) <= 9 && key.matches(r'")


def test_a_nested_model_is_inlined_with_its_defaults() -> None:
    assert made(Inner, Inner()) == {
        "type": "object",
        "description": "What is inside.",
        "default": {},
        "properties": {"size": {"type": "integer", "default": 2, "minimum": 1, "maximum": 3}},
    }


def test_the_default_of_a_nested_model_says_only_what_differs() -> None:
    assert made(Inner, Inner(size=3))["default"] == {"size": 3}


def test_an_empty_default_is_absence() -> None:
    assert "default" not in made(Annotated[list[Name], Field(max_length=3)], [])


def test_an_open_object_keeps_what_it_is_given() -> None:
    annotation = Annotated[dict[str, Any], Field(json_schema_extra={"x-kubernetes-preserve-unknown-fields": True})]

    assert made(annotation) == {"type": "object", "x-kubernetes-preserve-unknown-fields": True}

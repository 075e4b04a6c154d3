from __future__ import annotations

import pytest

from specdec_operator.api.configuration import OperatorConfiguration
from specdec_operator.packaging.values import ChartValues
from specdec_operator.packaging.values_schema import SET_BY_THE_CHART, Schema, values_schema


@pytest.fixture(scope="module")
def schema() -> Schema:
    return values_schema()


def test_every_setting_of_the_operator_is_a_value_but_those_that_the_chart_sets(schema: Schema) -> None:
    settings = {str(field.alias) for field in OperatorConfiguration.model_fields.values()}
    assert set(schema["properties"]["config"]["properties"]) == settings - SET_BY_THE_CHART


def test_every_setting_keeps_its_bounds(schema: Schema) -> None:
    workers = schema["properties"]["config"]["properties"]["workers"]
    assert (workers["type"], workers["minimum"], workers["maximum"]) == ("integer", 1, 64)


def test_a_value_that_there_is_not_is_refused(schema: Schema) -> None:
    assert schema["additionalProperties"] is False
    assert schema["properties"]["config"]["additionalProperties"] is False


def test_every_value_says_what_it_is_for(schema: Schema) -> None:
    parts = [schema, *schema["$defs"].values()]
    undescribed = [
        name
        for part in parts
        for name, value in part.get("properties", {}).items()
        if not {"description", "$ref"} & set(value) and name not in ("LLMAPI", "TensorRTEngine", "VLLM")
    ]
    assert undescribed == []


def test_what_the_templates_read_may_not_be_removed_by_null(schema: Schema) -> None:
    assert {"image", "crds", "monitoring", "namespaces"} <= set(schema["required"])
    assert schema["$defs"]["Image"]["required"] == ["repository"]


def test_settings_of_the_operator_may_be_left_empty(schema: Schema) -> None:
    assert "config" not in schema["required"]
    assert "required" not in schema["properties"]["config"]


def test_a_row_that_is_like_another_need_not_say_all(schema: Schema) -> None:
    row = schema["$defs"]["ReleaseRow"]
    assert row["required"] == ["name"]
    assert "like" in row["properties"]


def test_a_null_in_a_row_removes_a_key(schema: Schema) -> None:
    assert schema["$defs"]["ReleaseRow"]["properties"]["cuda"]["type"] == ["string", "null"]


def test_a_quantity_may_be_a_number(schema: Schema) -> None:
    assert schema["$defs"]["StorageClaim"]["properties"]["size"]["type"] == ["string", "integer"]


def test_the_defaults_are_values_that_the_chart_takes() -> None:
    assert ChartValues.model_validate(ChartValues().model_dump(by_alias=True, mode="json")) == ChartValues()

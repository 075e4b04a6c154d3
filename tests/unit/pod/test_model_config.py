"""Editing Triton's model configuration."""

from __future__ import annotations

import pytest

from specdec_operator.pod.model_config import (
    Variables,
    fill,
    get_field,
    parameters,
    set_field,
    set_parameter,
    variables,
)
from specdec_operator.pod.textproto import EnumValue, Message, TextProtoError, parse

TEXT = """
max_batch_size: ${size}
model_transaction_policy { decoupled: ${decoupled} }
output [ { name: "logits" data_type: ${type} } ]
parameters: { key: "path" value: { string_value: "${engine}/x" } }
parameters: { key: "ids" value: { string_value: "${ids}" } }
"""


def test_placeholders_of_fields_and_of_texts_are_told_apart() -> None:
    found = variables(parse(TEXT))

    assert found == Variables(frozenset({"size", "decoupled", "type"}), frozenset({"engine", "ids"}))


def test_a_field_takes_its_values_type() -> None:
    filled = fill(parse(TEXT), {"size": "4", "decoupled": "False", "type": "TYPE_FP32"})

    assert get_field(filled, "max_batch_size") == 4
    assert get_field(filled, "model_transaction_policy.decoupled") is False
    assert get_field(filled.values("output")[0], "data_type") == EnumValue("TYPE_FP32")


def test_a_text_takes_any_value() -> None:
    filled = fill(parse(TEXT), {"engine": 'a"b\\c\n{0}', "ids": "1,2;3"})

    assert parameters(filled) == {"path": 'a"b\\c\n{0}/x', "ids": "1,2;3"}


def test_a_value_that_holds_a_placeholder_is_not_filled_again() -> None:
    assert parameters(fill(parse(TEXT), {"engine": "${ids}", "ids": "1"}))["path"] == "${ids}/x"


def test_a_value_that_cannot_stand_for_a_field_is_refused() -> None:
    with pytest.raises(TextProtoError, match="is no number, boolean or enumeration"):
        fill(parse(TEXT), {"size": "4 } evil { x: 1"})


def test_a_field_is_set_at_its_path() -> None:
    message = set_field(parse("default_queue_policy { max_queue_size: 1 }"), "default_queue_policy.max_queue_size", 2)

    assert get_field(message, "default_queue_policy.max_queue_size") == 2


def test_a_missing_field_is_made_with_its_parents() -> None:
    assert get_field(set_field(Message(), "a.b.c", 1), "a.b.c") == 1


def test_setting_a_repeated_field_replaces_all_of_it() -> None:
    groups = [{"count": 2, "kind": "KIND_CPU"}]
    message = set_field(parse("instance_group { count: 1 } instance_group { count: 3 }"), "instance_group", groups)

    (group,) = message.values("instance_group")
    assert (get_field(group, "count"), get_field(group, "kind")) == (2, EnumValue("KIND_CPU"))


def test_a_path_through_a_repeated_message_is_refused() -> None:
    with pytest.raises(TextProtoError, match="no single message"):
        set_field(parse("a { b: 1 } a { b: 2 }"), "a.b", 3)


def test_a_parameter_is_added() -> None:
    assert parameters(set_parameter(parse(TEXT), "new", "v"))["new"] == "v"


def test_a_parameter_is_replaced() -> None:
    message = set_parameter(parse(TEXT), "ids", "7")

    assert [get_field(entry, "key") for entry in message.values("parameters")].count("ids") == 1
    assert parameters(message)["ids"] == "7"


def test_parameters_written_as_a_list_are_read() -> None:
    assert parameters(parse('parameters [ { key: "a" value { string_value: "1" } } ]')) == {"a": "1"}

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from specdec_operator.api.yaml_text import read_yaml, read_yaml_documents, write_yaml

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="ascii", exclude_categories=["Cc"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc_", min_size=1), inner, max_size=3),
    max_leaves=8,
)


@given(PLAIN)
def test_what_is_written_reads_back(value: Any) -> None:
    assert read_yaml(write_yaml(value)) == value


def test_keys_keep_their_order() -> None:
    assert write_yaml({"b": 1, "a": [True, None]}) == "b: 1\na:\n- true\n- null\n"


@given(
    st.dictionaries(
        st.sampled_from(["model", "backend", "max_batch_size"]),
        st.integers()
        | st.sampled_from(
            ["/models/target", "pytorch", "${draft_target_decoding_type}", "GUARANTEED_NO_EVICT", "null", "1.0", "a: b"]
        ),
    )
)
def test_what_is_written_is_the_same_without_libyaml(value: dict[str, Any]) -> None:
    assert write_yaml(value) == yaml.safe_dump(value, sort_keys=False)


@pytest.mark.parametrize(
    "text",
    [
        "a: [1, 1.5, yes, ~, 2001-01-01, 0x1f, text]",
        "base: &base {a: 1}\nsame: *base\nmore: {<<: *base, b: 2}",
        "1: a\ntrue: b\n2001-01-01: c",
        "- &list [1]\n- *list",
        "{a: 1, a: 2}",
        "!!set {a, b}",
        "!!binary aGk=",
        "",
    ],
)
def test_a_text_means_what_pyyaml_says(text: str) -> None:
    assert read_yaml(text) == yaml.safe_load(text)


def test_what_an_alias_repeats_is_one_value() -> None:
    first, second = read_yaml("[&one {a: 1}, *one]")
    assert first is second


def test_a_value_may_hold_itself() -> None:
    value = read_yaml("&all {all: *all}")
    assert value["all"] is value


@pytest.mark.parametrize(
    "text", ["!unknown 1", "!!str {a: b}", "{[a]: 1}", "!!map [a]", "!!map a", "!!set a", "[1", "a\n---\nb", "!!int a"]
)
def test_what_pyyaml_refuses_is_refused(text: str) -> None:
    with pytest.raises((yaml.YAMLError, ValueError)):
        read_yaml(text)


def test_documents_are_read_one_by_one() -> None:
    assert read_yaml_documents("a: 1\n---\n---\n{1: 2}\n---\n[b]") == [{"a": 1}, None, {1: 2}, ["b"]]


def test_letters_may_stay_as_they_are() -> None:
    assert write_yaml({"a": "ü"}, allow_unicode=True) == "a: ü\n"

from __future__ import annotations

from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from specdec_operator.api.yaml_text import read_yaml, write_yaml

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


def test_letters_may_stay_as_they_are() -> None:
    assert write_yaml({"a": "ü"}, allow_unicode=True) == "a: ü\n"

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdec_operator.planning.keys import canonical_json, content_key, short


@given(st.dictionaries(st.text(), st.integers()))
def test_the_order_of_parts_is_no_part_of_a_key(parts: dict[str, int]) -> None:
    assert content_key(parts) == content_key(dict(reversed(parts.items())))


def test_another_value_is_another_key() -> None:
    assert content_key({"a": 1}) != content_key({"a": 2})


def test_a_text_is_not_the_number_that_it_spells() -> None:
    assert content_key({"a": "1"}) != content_key({"a": 1})


def test_a_name_carries_ten_digits() -> None:
    assert len(short(content_key({"a": 1}))) == 10


def test_what_json_can_not_say_has_no_key() -> None:
    with pytest.raises(ValueError, match="Out of range"):
        canonical_json(float("nan"))

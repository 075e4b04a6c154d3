from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from specdec_operator.api.documents import Document, read_text
from specdec_operator.cli.output import as_yaml

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
OBJECTS = st.dictionaries(
    TEXT,
    st.recursive(
        st.none() | st.booleans() | st.integers() | TEXT,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
        max_leaves=8,
    ),
    max_size=4,
)


@given(st.lists(OBJECTS, max_size=3))
@example([{"data": {"a": "two\nlines\n", "b": " leading\nspace", "c": "trailing \nspace\t\n\n"}}])
@example([{"a": "yes", "b": "1e3", "c": "0x1f", "d": "2026-01-01", "e": "~"}])
def test_objects_read_back_as_they_are(objects: list[dict[str, Any]]) -> None:
    assert list(yaml.safe_load_all(as_yaml(objects))) == objects


def test_a_text_of_several_lines_stays_lines() -> None:
    assert as_yaml([{"data": "a\nb\n"}]) == "---\ndata: |\n  a\n  b\n"


@pytest.mark.parametrize("text", ["y", "N", "yes", "1e5", "12345e6", "0o17", "0089", "1_000", "~", "", "0x1F"])
def test_text_that_kubectl_would_read_as_something_else_is_quoted(text: str) -> None:
    (read,) = read_text(as_yaml([{"a": text, text: "b"}]))

    assert isinstance(read, Document)
    assert read.content == {"a": text, text: "b"}


def test_what_fits_a_line_is_one() -> None:
    assert as_yaml([{"a": {"b": 1, "c": "d"}}]) == "---\na: {b: 1, c: d}\n"


def test_an_object_that_occurs_twice_is_written_twice() -> None:
    shared = {"a": {"b": 1}}

    assert "&" not in as_yaml([{"x": shared, "y": shared}])

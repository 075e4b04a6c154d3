from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from jinja2 import TemplateNotFound, UndefinedError

from specdec_operator.resources.template import Templates

TEMPLATES = Templates()
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
KEY = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEY, inner, max_size=3),
    max_leaves=10,
)


def service(**changes: Any) -> dict[str, Any]:
    values: dict[str, Any] = {
        "name": "a",
        "namespace": "b",
        "labels": {},
        "annotations": {},
        "owner": {},
        "type": "ClusterIP",
        "open_ai_port": None,
        "selector": {},
    }
    return TEMPLATES.fill("service.yaml.j2", **{**values, **changes})


@given(TEXT)
@example('"')
@example("'")
@example('a"\nspec: {type: LoadBalancer}')
@example("a: b")
@example("{{ 7 * 7 }}")
@example("{% raw %}")
@example("# comment")
@example("\U0001f600")
@example("\x85\u2028\u2029\x7f\ufeff\x00")
@example("\\")
@example("null")
@example("---\n")
def test_a_text_stays_what_it_is(text: str) -> None:
    assert service(annotations={"a": text})["metadata"]["annotations"] == {"a": text}


@given(TEXT)
def test_a_text_adds_nothing_to_its_neighbours(text: str) -> None:
    filled = service(name=text)
    plain = service(name="a")
    filled["metadata"]["name"] = "a"

    assert filled == plain


@given(JSON)
def test_a_value_stays_what_it_is(value: Any) -> None:
    assert service(labels={"a": value})["metadata"]["labels"] == {"a": value}


def test_a_missing_value_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="namespace"):
        TEMPLATES.fill("service.yaml.j2", name="a")


def test_a_missing_template_is_an_error() -> None:
    with pytest.raises(TemplateNotFound):
        TEMPLATES.fill("other.yaml.j2")


def test_what_yaml_can_not_say_is_an_error() -> None:
    with pytest.raises(ValueError, match="Out of range"):
        service(name=float("nan"))


def test_annotations_left_out_leave_no_trace() -> None:
    assert "annotations" not in service()["metadata"]

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdec_operator.api.documents import DEEPEST, Document, DocumentError, read_one, read_text
from specdec_operator.cli.output import as_yaml

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\ufeff"), max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


def contents(text: str) -> list[Any]:
    return [read.content if isinstance(read, Document) else str(read) for read in read_text(text)]


def one(text: str) -> Document:
    document = read_one(text)
    assert document is not None
    return document


@given(st.dictionaries(TEXT, JSON, max_size=4))
def test_json_is_read_as_it_is(value: dict[str, Any]) -> None:
    assert contents(json.dumps(value, indent=1)) == [value]


@given(st.dictionaries(TEXT, JSON, max_size=4))
def test_what_is_written_as_yaml_reads_back(value: dict[str, Any]) -> None:
    assert contents(as_yaml([value])) == [value]


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    for read in read_text(text):
        assert isinstance(read, Document | DocumentError)


def test_json_may_be_indented_with_tabs() -> None:
    assert contents('{\n\t"a": [\n\t\t1\n\t]\n}\n') == [{"a": [1]}]


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("a: 1\n---\nb: 2\n", [{"a": 1}, {"b": 2}]),
        ("---\na: 1\n---\n---\nb: 2\n---\n", [{"a": 1}, {"b": 2}]),
        ("# c\n%YAML 1.1\n---\na: 1\n", [{"a": 1}]),
        ("a: 1\n...\n---\nb: 2\n", [{"a": 1}, {"b": 2}]),
        ("--- {a: 1}\n--- {b: 2}", [{"a": 1}, {"b": 2}]),
        ("a: |\n  ---\n  b\n", [{"a": "---\nb\n"}]),
        ("\ufeffa: 1\r\n---\r\nb: 2\r\n", [{"a": 1}, {"b": 2}]),
        ("", []),
        ("# nothing\n", []),
    ],
)
def test_documents_are_parted(text: str, read: list[Any]) -> None:
    assert contents(text) == read


def test_a_broken_document_does_not_hide_the_others() -> None:
    first, broken, last = read_text("a: 1\n---\nb: [\n---\nc: 3\n")

    assert isinstance(first, Document)
    assert isinstance(broken, DocumentError)
    assert isinstance(last, Document)
    assert (first.content, last.content, last.line) == ({"a": 1}, {"c": 3}, 5)


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, "the key 'a' occurs twice"),
        ("a: 1\n---\nyes: 2\ntrue: 3\n", 4, "the key 'true' occurs twice"),
        ("a: 1\n1: 2\n'1': 3\n", 3, "the key '1' occurs twice"),
        ("a:\n  ? [b]\n  : c\n", 2, "a key must be text"),
        ("~: a\n", 1, "a key must be text; this one is null"),
        ("a: !!binary aGVsbG8=\n", 1, "could not determine a constructor"),
        ("a: !!int b\n", 1, "'b' is not of the type int"),
        ("a: !!bool [b]\n", 1, "is not of the type bool"),
        ("a: &b [*b]\n", 1, "recursive"),
        ("a: *b\n", 1, "found undefined alias"),
        ('a: "\\ud800"\n', 1, "invalid Unicode"),
        ("a: 'b\n", 2, "unexpected end of stream"),
        (f"a: {'[' * 100}{']' * 100}", 1, "nested too deeply"),
        (f"a: {'[' * 100_000}", 1, "nested too deeply"),
        ("\n".join("  " * depth + "a:" for depth in range(100)), 1, "nested too deeply"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(text: str, line: int, said: str) -> None:
    error = next(read for read in read_text(text) if isinstance(read, DocumentError))

    assert (error.line, said in str(error)) == (line, True), str(error)


def test_the_deepest_document_is_read() -> None:
    assert isinstance(next(read_text("[" * DEEPEST + "]" * DEEPEST)), Document)


def test_aliases_that_stand_for_more_and_more_are_refused_at_once() -> None:
    levels = [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
    began = time.process_time()
    (error,) = read_text("\n".join(["a0: &a0 [x, x, x, x, x, x, x, x, x]", *levels]))

    assert isinstance(error, DocumentError)
    assert "aliases stand for more" in str(error)
    assert time.process_time() - began < 1


def test_a_long_text_that_many_aliases_stand_for_is_refused() -> None:
    (error,) = read_text(f"a: &a {'x' * 100_000}\nb: [{', '.join(['*a'] * 1000)}]")

    assert isinstance(error, DocumentError)


def test_aliases_and_merged_keys_are_understood() -> None:
    assert contents("a: &m {x: 1, z: 2}\nb: {<<: *m, x: 3}\nc: *m\n") == [
        {"a": {"x": 1, "z": 2}, "b": {"x": 3, "z": 2}, "c": {"x": 1, "z": 2}}
    ]


def test_what_is_written_without_quotes_is_told_as_it_is() -> None:
    document = one("a: {b: [0012, '0012', text]}\nyes: no\n<<: {merged: 1.10}\n")

    assert [
        document.written(place) for place in (("a", "b", 0), ("a", "b", 1), ("a", "b", 2), ("true",), ("merged",))
    ] == [
        "0012",
        None,
        "text",
        "no",
        "1.10",
    ]


@pytest.mark.parametrize("place", [("b",), ("a", "b"), ("a", 7), ("a", "x"), ()])
def test_where_no_scalar_is_nothing_is_written(place: tuple[str | int, ...]) -> None:
    assert one("a: [1]\n").written(place) is None


def test_a_part_knows_its_line() -> None:
    assert one("a:\n  b:\n  - c: 1\n").part(("a", "b", 0)).line == 3


def test_surprises_are_told_with_their_places() -> None:
    document = one("a: [{b: 010}]\non: x\n'off': y\nc: '010'\n")

    assert [place for place, _ in document.surprises()] == [("a", 0, "b"), ("true",)]


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "~"])
def test_an_empty_text_is_no_document(text: str) -> None:
    assert read_one(text) is None


def test_one_document_is_not_several() -> None:
    with pytest.raises(DocumentError, match="several documents"):
        read_one("a: 1\n---\nb: 2\n")


def test_an_error_of_the_one_document_is_raised() -> None:
    with pytest.raises(DocumentError, match="twice"):
        read_one("a: 1\na: 2\n")

"""Protocol buffer text."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdec_operator.pod.textproto import (
    EnumValue,
    Field,
    Message,
    Placeholder,
    TextProtoError,
    parse,
    parse_scalar,
    print_message,
)

names = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True).filter(lambda name: name not in ("t", "f"))
scalars = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=12),
    st.integers(-(2**63), 2**63),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.builds(EnumValue, st.from_regex(r"[A-Z][A-Z0-9_]{2,8}", fullmatch=True)),
)


def lists_of(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(values, max_size=3).map(tuple)


def messages_of(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Message]:
    fields = st.builds(Field, names, values | lists_of(values))
    return st.lists(fields, max_size=4).map(lambda fields: Message(tuple(fields)))


messages = messages_of(st.recursive(scalars, lambda inner: scalars | messages_of(inner), max_leaves=8))


@given(messages)
def test_a_message_is_read_back_as_it_was_written(message: Message) -> None:
    assert parse(print_message(message)) == message


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("f: 1", 1),
        ("f: -1", -1),
        ("f: 0x1F", 31),
        ("f: 010", 8),
        ("f: 1.5", 1.5),
        ("f: 2e3", 2000.0),
        ("f: 1.5f", 1.5),
        ("f: True", True),
        ("f: false", False),
        ("f: KIND_CPU", EnumValue("KIND_CPU")),
        ("f : KIND_CPU", EnumValue("KIND_CPU")),
        ('f: "a\\"b\\n\\x41\\101"', 'a"b\nAA'),
        ("f: 'it''s'", "its"),
        ('f: "a" "b"', "ab"),
        ("f: ${x}", Placeholder("x")),
        ('f: "${x}"', "${x}"),
        ("f [ -1, 3 ]", (-1, 3)),
        ("f: []", ()),
        ("f {}", Message()),
        ("f: { g: 1 }", Message((Field("g", 1),))),
        ("f < g: 1 >", Message((Field("g", 1),))),
        ("# ${gone}\nf: 1 # too\n", 1),
        ("f: 1;", 1),
    ],
)
def test_every_spelling_of_the_format_is_read(text: str, value: object) -> None:
    assert parse(text).values("f") == (value if isinstance(value, tuple) else (value,))


def test_repeated_fields_and_lists_are_the_same_values() -> None:
    assert parse("f { a: 1 } f { a: 2 }").values("f") == parse("f [ { a: 1 }, { a: 2 } ]").values("f")


@pytest.mark.parametrize("text", ["f:", "f {", "f: }", "f: 1 }", "f 1", "]", "f: [1", 'f: "x', ": 1", "f: $x", "f: 1x"])
def test_malformed_text_is_refused(text: str) -> None:
    with pytest.raises(TextProtoError):
        parse(text)


def test_a_mistake_is_named_by_its_line() -> None:
    with pytest.raises(TextProtoError, match="line 3"):
        parse('name: "x"\n\nmax_batch_size 4\n')


@pytest.mark.parametrize("text", ['"x"', "1 2", "{ a: 1 }", "", "${x}", "1 }"])
def test_only_one_bare_value_is_a_scalar(text: str) -> None:
    with pytest.raises(TextProtoError):
        parse_scalar(text)


def test_a_placeholder_that_stands_for_a_value_cannot_be_written() -> None:
    with pytest.raises(TextProtoError, match=r"\$\{x\} has no value"):
        print_message(parse("max_batch_size: ${x}"))

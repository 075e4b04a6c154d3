from __future__ import annotations

import pytest

from specdec_operator.api.scalar_text import key_text, meaning, surprise


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("25.10", 25.1),
        ("0012345", 0o12345),
        ("-017", -0o17),
        ("0o17", 0o17),
        ("0089", 89.0),
        ("0x1F", 31),
        ("+0b101", 5),
        ("1_000", 1000),
        ("1e5", 100000.0),
        ("12345e6", 12345e6),
        (".5", 0.5),
        ("1.", 1.0),
        ("18446744073709551615", 2**64 - 1),
        ("18446744073709551616", 2.0**64),
        ("yes", True),
        ("Off", False),
        ("n", False),
        ("~", None),
        ("", None),
        ("Null", None),
    ],
)
def test_what_go_yaml_reads_as_something_else_is_not_text(text: str, value: object) -> None:
    assert (type(meaning(text)), meaning(text)) == (type(value), value)


@pytest.mark.parametrize(
    "text",
    [
        "12:30",
        "1:30:00",
        "2026-11-21",
        "2026-11-21T10:00:00Z",
        "1.2.3",
        "None",
        "nO",
        "yEs",
        "0x",
        "0xG",
        "1e",
        "e5",
        "-",
        "+",
        ".",
        "..",
        "1e999",
        "٣",
        "1__a",
        "=",
        "12345e6a",
        "9" * 5000,
    ],
)
def test_what_go_yaml_reads_as_text_is_text(text: str) -> None:
    assert meaning(text) == text


@pytest.mark.parametrize(
    ("key", "text"), [(True, "true"), (False, "false"), (8, "8"), (25.1, "25.1"), (89.0, "89"), ("a", "a")]
)
def test_a_key_becomes_text(key: str | bool | float, text: str) -> None:  # noqa: FBT001  a key is what it is
    assert key_text(key) == text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("010", "010 is read as 8 (octal, by its leading 0): write 8"),
        ("-0777", "-0777 is read as -511 (octal, by its leading 0): write -511"),
        ("10", ""),
        ("0", ""),
        ("0x10", ""),
        ("a", ""),
    ],
)
def test_an_octal_number_is_a_surprise(text: str, said: str) -> None:
    assert surprise(text) == said

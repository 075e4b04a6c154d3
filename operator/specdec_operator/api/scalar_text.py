"""What a YAML scalar without quotes means to kubectl and the API server: `go.yaml.in/yaml/v2`, resolve.go at v2.4.4."""

from __future__ import annotations

import math
import re
from typing import Final

Scalar = str | bool | int | float | None

_WORDS: Final[dict[str, Scalar]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
}
_OCTAL: Final = re.compile(r"([-+]?)0([0-7]+)")
_INTEGER: Final = re.compile(r"[-+]?(0[xX][0-9a-fA-F]{1,16}|0[bB][01]{1,64}|0[oO][0-7]{1,22}|0|[1-9][0-9]{0,19})")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_LEAST: Final = -(2**63)
_MOST: Final = 2**64 - 1


def meaning(text: str) -> Scalar:
    """The value of a scalar; infinity and what is not a number are text, since JSON has neither."""
    if text in _WORDS:
        return _WORDS[text]
    if not text[0].isascii() or text[0] not in "+-.0123456789":
        return text
    plain = text if text[0] == "." else text.replace("_", "")
    whole = _whole(plain)
    if whole is not None and _LEAST <= whole <= _MOST:
        return whole
    number = float(plain) if _FLOAT.fullmatch(plain) else math.inf
    return text if math.isinf(number) else number


def _whole(text: str) -> int | None:
    if octal := _OCTAL.fullmatch(text[:64]):
        return int(f"{octal[1]}{octal[2]}", 8)
    return int(text, 0) if _INTEGER.fullmatch(text) else None


def key_text(key: Scalar) -> str:
    """The text that a key of a map becomes."""
    if isinstance(key, bool):
        return "true" if key else "false"
    return str(int(key)) if isinstance(key, float) and key.is_integer() else str(key)


def surprise(text: str) -> str:
    """What a reader would not expect a number to be, in words; empty where it is what it looks like."""
    value = meaning(text)
    octal = isinstance(value, int) and _OCTAL.fullmatch(text.replace("_", ""))
    return f"{text} is read as {value} (octal, by its leading 0): write {value}" if octal else ""

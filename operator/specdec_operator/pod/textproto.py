"""Protocol buffer text format, as far as Triton's config.pbtxt uses it, with `${variable}` placeholders.

A placeholder may stand where a value stands, or inside a string. Comments are dropped.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


class TextProtoError(ValueError):
    """The text is no protocol buffer text; the message names the line."""


@dataclass(frozen=True)
class EnumValue:
    """A bare word: an enumeration's value, such as TYPE_FP32."""

    name: str


@dataclass(frozen=True)
class Placeholder:
    """A `${variable}` that stands for a whole value."""

    variable: str


@dataclass(frozen=True)
class Field:
    """One `name: value` of a message. A repeated field is several of them, or one whose value is a tuple."""

    name: str
    value: Any


@dataclass(frozen=True)
class Message:
    """Fields in the order of the text.

    A value is a str, int, float, bool, EnumValue, Placeholder, Message, or a tuple of these.
    """

    fields: tuple[Field, ...] = ()

    def values(self, name: str) -> tuple[Any, ...]:
        """All values of a field, repeated ones one by one."""
        found: list[Any] = []
        for field in self.fields:
            if field.name == name:
                found.extend(field.value if isinstance(field.value, tuple) else (field.value,))
        return tuple(found)


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    line: int


_TOKENS = re.compile(
    r"""(?P<space>[\s;]+|\#[^\n]*)
      | (?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
      | (?P<placeholder>\$\{[A-Za-z_][A-Za-z0-9_]*\})
      | (?P<number>[-+]?(?:0[xX][0-9a-fA-F]+|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)[fF]?(?![A-Za-z0-9_]))
      | (?P<word>-?[A-Za-z_][A-Za-z0-9_]*)
      | (?P<mark>[{}\[\]:,<>])""",
    re.VERBOSE,
)
_BOOLEANS = {"true": True, "True": True, "t": True, "false": False, "False": False, "f": False}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|([0-7]{1,3})|u([0-9a-fA-F]{4})|(.))")


def parse(text: str) -> Message:
    """Read protocol buffer text.

    Raises:
        TextProtoError: the text is malformed.
    """
    return _Parser(_tokens(text)).message(end="")


def parse_scalar(text: str) -> Any:
    """Read a single number, boolean or enumeration value.

    Raises:
        TextProtoError: the text is anything else.
    """
    tokens = _tokens(text)
    if len(tokens) != 2 or tokens[0].kind not in ("number", "word"):
        raise TextProtoError(f"{text!r} is no number, boolean or enumeration value")
    return _Parser(tokens).value()


def print_message(message: Message, *, indent: int = 0) -> str:
    """Write a message as protocol buffer text, one field a line.

    Raises:
        TextProtoError: a placeholder is left where a value must stand.
    """
    return "".join(f"{'  ' * indent}{_print_field(field, indent)}\n" for field in message.fields)


class _Parser:
    def __init__(self, tokens: Sequence[_Token]) -> None:
        self._tokens = tokens
        self._at = 0

    def message(self, *, end: str) -> Message:
        fields: list[Field] = []
        while not self._is(end):
            fields.append(self._field())
            if self._is(","):
                self._take()
        self._take()
        return Message(tuple(fields))

    def value(self) -> Any:
        token = self._take()
        if token.kind == "string":
            return self._string(token)
        if token.kind == "placeholder":
            return Placeholder(token.text[2:-1])
        if token.kind == "number":
            return _number(token)
        if token.kind == "word":
            return _BOOLEANS[token.text] if token.text in _BOOLEANS else EnumValue(token.text)
        return self._compound(token)

    def _compound(self, token: _Token) -> Any:
        if token.text in ("{", "<"):
            return self.message(end="}" if token.text == "{" else ">")
        if token.text == "[":
            return self._list()
        raise _unexpected(token)

    def _field(self) -> Field:
        name = self._take()
        if name.kind != "word":
            raise _unexpected(name)
        if self._is(":"):
            self._take()
        elif not (self._is("{") or self._is("<") or self._is("[")):
            raise _unexpected(self._tokens[self._at])
        return Field(name.text, self.value())

    def _list(self) -> tuple[Any, ...]:
        items: list[Any] = []
        while not self._is("]"):
            items.append(self.value())
            if self._is(","):
                self._take()
        self._take()
        return tuple(items)

    def _string(self, token: _Token) -> str:
        parts = [_unescape(token)]
        while self._tokens[self._at].kind == "string":
            parts.append(_unescape(self._take()))
        return "".join(parts)

    def _is(self, text: str) -> bool:
        token = self._tokens[self._at]
        return token.kind in ("mark", "end") and token.text == text

    def _take(self) -> _Token:
        token = self._tokens[self._at]
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return token


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    position, line = 0, 1
    while position < len(text):
        match = _TOKENS.match(text, position)
        if match is None:
            raise TextProtoError(f"line {line}: unexpected {text[position : position + 20]!r}")
        if match.lastgroup != "space":
            tokens.append(_Token(str(match.lastgroup), match.group(), line))
        line += match.group().count("\n")
        position = match.end()
    return [*tokens, _Token("end", "", line)]


def _number(token: _Token) -> int | float:
    text = token.text
    if re.fullmatch(r"[-+]?0[xX][0-9a-fA-F]+", text):
        return int(text, 16)
    if re.fullmatch(r"[-+]?[0-9]+", text):
        return int(text, 8 if re.fullmatch(r"[-+]?0[0-7]+", text) else 10)
    return float(text.rstrip("fF"))


def _unescape(token: _Token) -> str:
    def character(match: re.Match[str]) -> str:
        hexadecimal, octal, unicode, plain = match.groups()
        if hexadecimal or unicode:
            return chr(int(hexadecimal or unicode, 16))
        return chr(int(octal, 8)) if octal else _ESCAPES.get(plain, plain)

    return _ESCAPE.sub(character, token.text[1:-1])


def _unexpected(token: _Token) -> TextProtoError:
    return TextProtoError(f"line {token.line}: unexpected {token.text!r}" if token.text else "unexpected end of text")


def _print_field(field: Field, indent: int) -> str:
    if isinstance(field.value, Message):
        return f"{field.name} {_print_value(field.value, indent)}"
    if isinstance(field.value, tuple) and any(isinstance(item, Message) for item in field.value):
        return f"{field.name} {_print_value(field.value, indent)}"
    return f"{field.name}: {_print_value(field.value, indent)}"


def _print_value(value: Any, indent: int) -> str:
    if isinstance(value, Message):
        return f"{{\n{print_message(value, indent=indent + 1)}{'  ' * indent}}}"
    if isinstance(value, tuple):
        return f"[{', '.join(_print_value(item, indent) for item in value)}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _quote(value)
    if isinstance(value, EnumValue):
        return value.name
    if isinstance(value, Placeholder):
        raise TextProtoError(f"${{{value.variable}}} has no value")
    return repr(value)


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + re.sub(r"[\x00-\x1f\x7f]", lambda match: f"\\{ord(match.group()):03o}", escaped) + '"'

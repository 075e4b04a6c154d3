"""YAML and JSON that people write, read as kubectl reads it; but a key that occurs twice is an error.

What a scalar without quotes means is decided by the rules of `go.yaml.in/yaml/v2`, with which kubectl and the API
server read (resolve.go at v2.4.4), not by PyYAML's: `1e5` is a number, `y` is true, `12:30` and `2026-11-21` are text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import yaml

from specdec_operator.api.scalar_text import key_text, meaning, surprise

if yaml.__with_libyaml__:
    from yaml._yaml import CParser

if TYPE_CHECKING:
    from collections.abc import Iterator

    from specdec_operator.api.tree import Location

DEEPEST: Final = 64
"""Levels of maps and lists. A Kubernetes object has less than half."""
LARGEST: Final = 32 * 2**20
"""What a document may come to with its aliases written out: 32 for each value, and 1 for each character."""
_VALUE: Final = 32
_MARKER: Final = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_NOTHING_YET: Final = re.compile(r"(\s*([#%].*)?\n)*\s*")
_PAIR: Final = re.compile(r"(?<!\\)((?:\\\\)*)\\u([dD][89abAB]..)\\u([dD][c-fC-F]..)")
_TAG: Final = "tag:yaml.org,2002:"
_TAGS: Final = {str: "str", bool: "bool", int: "int", float: "float", type(None): "null"}


class DocumentError(Exception):
    """A text is not what kubectl would read.

    Attributes:
        line: Where, counted from 1; None where no place is known.
    """

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True)
class Document:
    """A value that somebody wrote.

    Attributes:
        content: The value; the keys of its maps are text.
        above: Lines of the text above the part that its node counts in.
    """

    content: Any
    node: yaml.Node
    above: int = 0

    @property
    def line(self) -> int:
        """Where it begins, counted from 1."""
        return self.above + int(self.node.start_mark.line) + 1

    def part(self, location: Location) -> Document:
        """A value inside.

        Raises:
            LookupError: There is none.
        """
        content, node = self.content, self.node
        for step in location:
            content, node = content[step], _inside(node, step)
        return Document(content, node, self.above)

    def written(self, location: Location) -> str | None:
        """The characters of a scalar inside that has no quotes; None for any other value, and where there is none."""
        try:
            node = self.part(location).node
        except (LookupError, TypeError):  # a list where a map should be
            return None
        return str(node.value) if isinstance(node, yaml.ScalarNode) and not node.style else None

    def surprises(self) -> Iterator[tuple[Location, str]]:
        """Numbers and keys that mean something else than a reader would expect, with their places."""
        yield from _surprises(self.node, ())


def read_text(text: str) -> Iterator[Document | DocumentError]:
    """Read the documents of a text. One that can't be read does not keep the others from being read."""
    for above, part in _parts(text):
        try:
            yield from _documents(part, above)
        except DocumentError as error:
            yield error


def read_one(text: str) -> Document | None:
    """Read a text that is one document; None if it is empty.

    Raises:
        DocumentError: It can't be read, or holds several.
    """
    documents: list[Document] = []
    for read in read_text(text):
        if isinstance(read, DocumentError):
            raise read
        documents.append(read)
    if len(documents) > 1:
        raise DocumentError("holds several documents: give one", documents[1].line)
    return documents[0] if documents else None


def _parts(text: str) -> Iterator[tuple[int, str]]:
    """The documents of a text as kubectl parts them, each with the number of lines above it."""
    starts = [marker.start() for marker in _MARKER.finditer(text)]
    if not starts or not _NOTHING_YET.fullmatch(text, 0, starts[0]):
        starts.insert(0, 0)
    else:
        starts[0] = 0  # comments and directives belong to the document below
    above = 0
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        yield above, text[start:end]
        above += text.count("\n", start, end)


def _documents(text: str, above: int) -> Iterator[Document]:
    try:
        loader = _Loader(_PAIR.sub(_character, text) if text.lstrip().startswith(("{", "[")) else text)
        while loader.check_node() and (node := loader.get_node()) is not None:
            _Size().measure(node)
            content = loader.construct_object(node, deep=True)
            if content is not None:
                yield Document(content, node, above)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise DocumentError(str(error.problem or error.context), above + mark.line + 1 if mark else None) from error
    except yaml.YAMLError as error:
        raise DocumentError(" ".join(str(error).split())) from error
    except RecursionError as error:
        raise _too_deep(above + 1) from error


def _character(pair: re.Match[str]) -> str:
    """A character that JSON writes as two surrogates, which YAML has no word for."""
    return pair[1] + bytes.fromhex(pair[2] + pair[3]).decode("utf-16-be", "replace")


def _too_deep(line: int) -> DocumentError:
    return DocumentError(f"nested too deeply: more than {DEEPEST} maps and lists inside each other", line)


def _inside(node: yaml.Node, step: int | str) -> yaml.Node:
    if isinstance(step, int):
        element: yaml.Node = node.value[step]
        return element
    # A merged key stands before the map's own, which wins.
    for key, value in reversed(node.value):
        if _name(key) == step:
            found: yaml.Node = value
            return found
    raise LookupError(step)


def _name(key: yaml.ScalarNode) -> str:
    return str(key.value) if key.style else key_text(meaning(key.value))


def _surprises(node: yaml.Node, location: Location) -> Iterator[tuple[Location, str]]:
    if isinstance(node, yaml.ScalarNode) and not node.style and (words := surprise(node.value)):
        yield location, words
    if isinstance(node, yaml.SequenceNode):
        for index, part in enumerate(node.value):
            yield from _surprises(part, (*location, index))
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            name = _name(key)
            if name != key.value:
                yield (*location, name), f'YAML reads the key {key.value} as {name}; quote it: "{key.value}"'
            yield from _surprises(value, (*location, name))


class _Size:
    """Measures documents with their aliases written out, without writing them out."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[int, int]] = {}

    def measure(self, node: yaml.Node) -> None:
        depth, size = self._of(node)
        if depth > DEEPEST or size > LARGEST:
            mark, deep = node.start_mark, depth > DEEPEST
            what = (
                "nested too deeply" if deep else "too large: its aliases stand for more than a Kubernetes object holds"
            )
            raise yaml.constructor.ConstructorError(None, None, what, mark)

    def _of(self, node: yaml.Node) -> tuple[int, int]:
        if id(node) not in self._known:
            self._known[id(node)] = (0, 0)  # of a node that holds itself, which the constructor refuses
            parts = [self._of(part) for part in _parts_of(node)]
            own = len(node.value) if isinstance(node, yaml.ScalarNode) else 0
            depth = 1 + max((depth for depth, _ in parts), default=-1)
            self._known[id(node)] = (depth, _VALUE + own + sum(size for _, size in parts))
        return self._known[id(node)]


def _parts_of(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return node.value if isinstance(node, yaml.SequenceNode) else []


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader around libyaml's parser, five times as fast.

    libyaml's own loader ends the process where a text is nested too deeply.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._events: Any = CParser(text) if yaml.__with_libyaml__ else super()

    def check_event(self, *choices: Any) -> bool:
        return bool(self._events.check_event(*choices))

    def peek_event(self) -> Any:
        return self._events.peek_event()

    def get_event(self) -> Any:
        return self._events.get_event()

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> str:
        if kind is not yaml.ScalarNode:
            return f"{_TAG}{'map' if kind is yaml.MappingNode else 'seq'}"
        if implicit[0] and value == "<<":
            return f"{_TAG}merge"
        return _TAG + (_TAGS[type(meaning(value))] if implicit[0] else "str")

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: ARG002, FBT001, FBT002  PyYAML's signature
        seen: set[str] = set()
        for key, _ in node.value:
            name = self._key(key)
            if name in seen and name != "<<":
                raise _wrong(key, f"the key {name!r} occurs twice in one map; remove one")
            seen.add(name)
        self.flatten_mapping(node)
        return {self._key(key): self.construct_object(value, deep=True) for key, value in node.value}

    def _key(self, node: yaml.Node) -> str:
        if not isinstance(node, yaml.ScalarNode):
            raise _wrong(node, "a key must be text")
        if node.tag == f"{_TAG}merge":
            return "<<"
        key = self.construct_object(node)
        if key is None:
            raise _wrong(node, "a key must be text; this one is null")
        return key_text(key)

    def construct_plain(self, node: yaml.Node) -> Any:
        """A scalar that is not text.

        Raises:
            yaml.constructor.ConstructorError: It is not what the tag that stands before it says.
        """
        value = meaning(node.value) if isinstance(node, yaml.ScalarNode) else node.value
        if node.tag == f"{_TAG}float" and isinstance(value, int):
            return float(value)
        if node.tag != _TAG + _TAGS.get(type(value), ""):
            raise _wrong(node, f"{node.value!r} is not of the type {node.tag.removeprefix(_TAG)}")
        return value


_Loader.yaml_constructors = {
    f"{_TAG}map": _Loader.construct_yaml_map,
    f"{_TAG}seq": _Loader.construct_yaml_seq,
    f"{_TAG}str": _Loader.construct_yaml_str,
    **{f"{_TAG}{tag}": _Loader.construct_plain for tag in ("bool", "int", "float", "null")},
    None: _Loader.construct_undefined,
}


def _wrong(node: yaml.Node, what: str) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(None, None, what, node.start_mark)

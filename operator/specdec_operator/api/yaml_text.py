"""YAML by libyaml, where PyYAML was built with it: ten times faster."""

from __future__ import annotations

from typing import Any, Final

import yaml

_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DUMPER: Final[Any] = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_TEXT: Final = "tag:yaml.org,2002:str"
_MAP: Final = "tag:yaml.org,2002:map"
_SEQUENCE: Final = "tag:yaml.org,2002:seq"


def read_yaml(text: str) -> Any:
    """The one document of a text; None if it is empty.

    Raises:
        yaml.YAMLError: It is no YAML, or holds several documents.
    """
    loader = _LOADER(text)
    try:
        node = loader.get_single_node()
        return None if node is None else _value(loader, node)
    finally:
        loader.dispose()


def read_yaml_documents(text: str) -> list[Any]:
    """The documents of a text; an empty one is None.

    Raises:
        yaml.YAMLError: It is no YAML.
    """
    loader = _LOADER(text)
    try:
        documents = []
        while loader.check_node():
            documents.append(_value(loader, loader.get_node()))
        return documents
    finally:
        loader.dispose()


def write_yaml(value: Any, *, width: int = 80, allow_unicode: bool = False) -> str:
    """One document, with keys in their own order.

    Args:
        width: Where lines are folded, in characters.
        allow_unicode: Whether letters beyond ASCII are written as they are.

    Raises:
        yaml.YAMLError: It holds something that is not plain data.
    """
    return str(yaml.dump(value, Dumper=_DUMPER, sort_keys=False, width=width, allow_unicode=allow_unicode))


class _Unusual(Exception):  # noqa: N818 - no error: it ends the short way
    """A document holds more than maps with text for keys, sequences and scalars."""


def _value(loader: Any, node: yaml.Node) -> Any:
    """What PyYAML's constructor makes of a document, in a third of its time where there are only plain values."""
    try:
        return _plain_value(loader, node)
    except _Unusual:
        return loader.construct_document(node)


def _plain_value(loader: Any, document: yaml.Node) -> Any:
    # Without recursion, as deep as PyYAML goes; a node that an alias repeats is one object, as it is there.
    made: dict[yaml.Node, Any] = {}
    unread: list[yaml.Node] = []

    def value(node: yaml.Node) -> Any:
        if node.tag == _TEXT and isinstance(node, yaml.ScalarNode):
            return node.value
        if isinstance(node, yaml.ScalarNode):
            return loader.construct_object(node, deep=True)
        if node not in made:
            made[node] = _empty(node)
            unread.append(node)
        return made[node]

    whole = value(document)
    while unread:
        node = unread.pop()
        if isinstance(node, yaml.MappingNode):
            made[node].update((_key(key), value(each)) for key, each in node.value)
        else:
            made[node].extend(value(each) for each in node.value)
    return whole


def _empty(node: yaml.Node) -> dict[str, Any] | list[Any]:
    if node.tag == _MAP and isinstance(node, yaml.MappingNode):
        return {}
    if node.tag == _SEQUENCE and isinstance(node, yaml.SequenceNode):
        return []
    raise _Unusual


def _key(node: yaml.Node) -> str:
    if node.tag == _TEXT and isinstance(node, yaml.ScalarNode):
        key: str = node.value
        return key
    raise _Unusual

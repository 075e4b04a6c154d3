"""Objects as YAML that people read: texts of several lines stay lines, and what fits a line is one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from specdec_operator.api.scalar_text import meaning

if TYPE_CHECKING:
    from collections.abc import Iterable

_LINE = 100
_Base: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _Dumper(_Base):  # type: ignore[misc]
    """Writes every object out, without anchors, which kubectl reads but people don't."""

    def ignore_aliases(self, data: object) -> bool:
        del data
        return True

    def represent_sequence(self, tag: str, sequence: Any, flow_style: Any = None) -> Any:
        node = super().represent_sequence(tag, sequence, flow_style)
        node.flow_style = _fits_a_line(node.value)
        return node

    def represent_mapping(self, tag: str, mapping: Any, flow_style: Any = None) -> Any:
        node = super().represent_mapping(tag, mapping, flow_style)
        node.flow_style = _fits_a_line([part for pair in node.value for part in pair])
        return node


def _fits_a_line(nodes: list[Any]) -> bool:
    scalars = all(isinstance(node, yaml.ScalarNode) and node.style != "|" for node in nodes)
    return scalars and sum(len(node.value) + 4 for node in nodes) <= _LINE


def _text(dumper: Any, text: str) -> Any:
    # kubectl reads some words and numbers as such that PyYAML takes for text.
    style = "|" if "\n" in text else None if isinstance(meaning(text), str) else "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def as_yaml(objects: Iterable[dict[str, Any]]) -> str:
    """Objects as YAML documents that read back as the same."""
    return "".join(
        f"---\n{yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1000)}"
        for document in objects
    )

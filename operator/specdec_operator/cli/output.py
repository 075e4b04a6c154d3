"""Objects as YAML that people read: texts of several lines stay lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterable

_Base: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _Dumper(_Base):  # type: ignore[misc]
    """Writes every object out: no anchors, which kubectl reads but people don't."""

    def ignore_aliases(self, data: object) -> bool:
        del data
        return True


def _text(dumper: Any, text: str) -> Any:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def as_yaml(objects: Iterable[dict[str, Any]]) -> str:
    """Objects as YAML documents that read back as the same."""
    return "".join(
        f"---\n{yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)}"
        for document in objects
    )

"""YAML by libyaml, where PyYAML was built with it: ten times faster."""

from __future__ import annotations

from typing import Any, Final

import yaml

_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DUMPER: Final[Any] = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def read_yaml(text: str) -> Any:
    """The one document of a text; None if it is empty.

    Raises:
        yaml.YAMLError: It is no YAML, or holds several documents.
    """
    return yaml.load(text, Loader=_LOADER)  # noqa: S506 - a safe loader either way


def read_yaml_documents(text: str) -> list[Any]:
    """The documents of a text; an empty one is None.

    Raises:
        yaml.YAMLError: It is no YAML.
    """
    return list(yaml.load_all(text, Loader=_LOADER))


def write_yaml(value: Any, *, width: int = 80, allow_unicode: bool = False) -> str:
    """One document, with keys in their own order.

    Args:
        width: Where lines are folded, in characters.
        allow_unicode: Whether letters beyond ASCII are written as they are.

    Raises:
        yaml.YAMLError: It holds something that is not plain data.
    """
    return str(yaml.dump(value, Dumper=_DUMPER, sort_keys=False, width=width, allow_unicode=allow_unicode))

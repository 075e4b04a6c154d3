"""YAML templates filled as data, not as text: every expression is written as JSON, which is YAML.

Nothing of a spec can end a string, open a map or add a key.
"""

from __future__ import annotations

import json
import re
from importlib import resources
from typing import Any

from jinja2 import BaseLoader, Environment, StrictUndefined, TemplateNotFound, Undefined

from specdec_operator.api.yaml_text import read_yaml

JsonObject = dict[str, Any]


class _PackageTemplates(BaseLoader):
    """Templates beside this module."""

    def get_source(self, environment: Environment, template: str) -> tuple[str, None, None]:
        """The text of a template.

        Raises:
            TemplateNotFound: No such file.
        """
        del environment
        file = resources.files("specdec_operator.resources").joinpath("templates", template)
        if not file.is_file():
            raise TemplateNotFound(template)
        return file.read_text(), None, None


class Templates:
    """The templates of Kubernetes objects."""

    def __init__(self) -> None:
        self._environment = Environment(
            loader=_PackageTemplates(),
            undefined=StrictUndefined,
            finalize=_as_json,
            trim_blocks=True,
            lstrip_blocks=True,
            autoescape=False,  # noqa: S701 - the output is YAML; finalize writes every value as JSON
        )
        # Jinja's own names, such as `namespace`, would stand in for a forgotten value.
        self._environment.globals.clear()

    def fill(self, template: str, /, **values: object) -> JsonObject:
        """Fill one template and read it as one YAML document."""
        text = self._environment.get_template(template).render(**values)
        document: JsonObject = read_yaml(text)
        return document


def _as_json(value: object) -> str:
    """JSON that is YAML too: YAML takes no surrogate pairs, and reads some letters as line ends."""
    if isinstance(value, Undefined):
        str(value)  # raises UndefinedError, which names the value
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return re.sub(r"[^\x20-\x7e]", lambda letter: f"\\U{ord(letter[0]):08x}", text)

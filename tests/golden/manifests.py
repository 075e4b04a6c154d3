"""The examples' manifests in a form that a reviewer reads: inputs opened up, sources of programs left out.

What a program's source decides (ConfigMaps' contents and names) is shortened, so that a golden file changes when a
decision changes and not when a program is edited.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from specdec_operator.api.configuration import OperatorConfiguration
from specdec_operator.api.v1alpha1.speculative_model import parse
from specdec_operator.cli.documents import read_documents
from specdec_operator.cli.facts import read_facts_file
from specdec_operator.cli.output import as_yaml
from specdec_operator.resources.known import Known
from specdec_operator.resources.render import Renderer
from specdec_operator.resources.template import Templates
from specdec_operator.runtimes.table import load_table

Json = dict[str, Any]
ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
HOW_TO_UPDATE = "if the change is meant, run `make golden` and review the difference"


def golden_file(example: Path) -> Path:
    return ROOT / "tests" / "golden" / example.name


@cache
def _renderer() -> Renderer:
    return Renderer(table=load_table(), configuration=OperatorConfiguration(), templates=Templates())


def render(example: Path, *, with_facts: bool = True) -> tuple[list[Json], tuple[str, ...]]:
    """The objects of an example and what is missing."""
    (document,) = read_documents(str(example))
    facts = example.parent / "facts" / example.name
    known = read_facts_file(str(facts)) if with_facts else Known()
    rendering = _renderer().render(parse(document.content), known)
    return list(rendering.objects), rendering.missing


def golden_text(example: Path) -> str:
    """What an example's golden file holds."""
    objects, _ = render(example)
    text = as_yaml(_readable(document) for document in objects)
    for document in objects:
        name = document["metadata"]["name"]
        if document["kind"] == "ConfigMap":
            text = text.replace(name, f"{name.rpartition('-')[0]}-HASH")
    return f"# What the operator applies for examples/{example.name}; written by `make golden`.\n{text}"


def _readable(value: Any) -> Any:
    if isinstance(value, dict) and value.get("kind") == "ControllerRevision":
        return {**value, "data": "the Deployment's template and the ConfigMap's data"}
    if isinstance(value, dict):
        return {key: _opened(key, part) for key, part in value.items() if not key.endswith(".py")}
    if isinstance(value, list):
        return [_readable(part) for part in value if not _is_source(part)]
    return value


def _opened(key: str, value: Any) -> Any:
    if isinstance(value, str) and (key.endswith(".json") or key == "repository") and value.startswith("{"):
        return _readable(json.loads(value))
    return _readable(value)


def _is_source(part: Any) -> bool:
    return isinstance(part, dict) and str(part.get("key", "")).endswith(".py")

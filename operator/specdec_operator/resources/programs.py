"""How a container runs one of the pod's programs: its files in a ConfigMap, its input beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specdec_operator.planning.keys import content_key, short
from specdec_operator.pod.sources import PROGRAM_DIRECTORY, mount_items, program_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from specdec_operator.resources.template import JsonObject


def input_path(program: str) -> str:
    """Where a program finds its input."""
    return f"{PROGRAM_DIRECTORY}/{program}.json"


def program_arguments(program: str) -> list[str]:
    """The arguments that run a program; the image's entrypoint stays in front of them."""
    return ["python3", PROGRAM_DIRECTORY, program, input_path(program)]


def program_data(inputs: Mapping[str, str]) -> dict[str, str]:
    """ConfigMap data: the programs with everything that they import, and their inputs.

    Args:
        inputs: Input document per program.
    """
    return {**program_files(*inputs), **{f"{program}.json": text for program, text in inputs.items()}}


def program_volume(config_map: str, keys: Iterable[str]) -> JsonObject:
    """The volume that lays the ConfigMap's keys out as files."""
    names = sorted(keys)
    inputs = [key for key in names if key.endswith(".json")]
    items = [{"key": item.key, "path": item.path} for item in mount_items([k for k in names if k not in inputs])]
    items += [{"key": key, "path": key} for key in inputs]
    return {"name": "program", "configMap": {"name": config_map, "items": items}}


def config_map(
    *, prefix: str, namespace: str, labels: Mapping[str, str], owner: JsonObject, data: Mapping[str, str]
) -> JsonObject:
    """An immutable ConfigMap, named by its content."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": config_map_name(prefix, data),
            "namespace": namespace,
            "labels": dict(labels),
            "ownerReferences": [owner],
        },
        "immutable": True,
        "data": dict(data),
    }


def config_map_name(prefix: str, data: Mapping[str, str]) -> str:
    """The name of a ConfigMap with that content."""
    return f"{prefix}-{short(content_key(data))}"


def plain_environment(values: Mapping[str, str]) -> list[JsonObject]:
    """Environment variables with literal values: Kubernetes expands `$(NAME)`, and reads `$$` as `$`."""
    return [{"name": name, "value": text.replace("$", "$$")} for name, text in values.items()]

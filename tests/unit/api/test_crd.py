from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from kubernetes.client import V1CustomResourceDefinition

from specdec_operator.api.crd import definition
from specdec_operator.api.generate import crd_text
from specdec_operator.api.v1alpha1.kinds import KINDS, MODEL_ARTIFACT, SPECULATIVE_MODEL
from specdec_operator.api.yaml_text import read_yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

    from specdec_operator.api.crd import CustomResource

every_kind = pytest.mark.parametrize("resource", KINDS, ids=lambda resource: resource.kind)
SERVERS_OWN = ("apiVersion", "kind", "metadata")


def nodes(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, part in schema.get("properties", {}).items():
        if path or name not in SERVERS_OWN:
            yield from nodes(part, f"{path}.{name}")
    for below in ("items", "additionalProperties"):
        if below in schema:
            yield from nodes(schema[below], f"{path}[]")


def version(resource: CustomResource) -> dict[str, Any]:
    found: dict[str, Any] = definition(resource)["spec"]["versions"][0]
    return found


def every_node(resource: CustomResource) -> dict[str, dict[str, Any]]:
    return dict(nodes(version(resource)["schema"]["openAPIV3Schema"]))


@every_kind
def test_every_string_list_and_map_is_bounded(resource: CustomResource) -> None:
    limits = {"string": ("maxLength", "enum"), "array": ("maxItems",)}
    unbounded = [
        path
        for path, schema in every_node(resource).items()
        if not any(limit in schema for limit in limits.get(schema.get("type", ""), ("type", "anyOf")))
        or ("additionalProperties" in schema and "maxProperties" not in schema)
    ]

    assert unbounded == []


@every_kind
def test_every_node_says_its_type(resource: CustomResource) -> None:
    typeless = [
        path
        for path, schema in every_node(resource).items()
        if "type" not in schema and not schema.get("x-kubernetes-int-or-string")
    ]

    assert typeless == []


@every_kind
def test_every_field_is_described(resource: CustomResource) -> None:
    silent = [
        path
        for path, schema in every_node(resource).items()
        if path and not path.endswith("[]") and not schema.get("description")
    ]

    assert silent == []


@every_kind
def test_every_whole_number_of_a_spec_has_both_bounds(resource: CustomResource) -> None:
    open_ended = [
        path
        for path, schema in every_node(resource).items()
        if path.startswith(".spec") and schema.get("type") == "integer" and not {"minimum", "maximum"} <= set(schema)
    ]

    assert open_ended == []


@every_kind
def test_a_status_has_no_default_but_as_a_whole(resource: CustomResource) -> None:
    defaulted = [path for path, schema in every_node(resource).items() if ".status" in path and "default" in schema]

    assert defaulted == [".status"]


@every_kind
def test_the_definition_fits_into_an_annotation(resource: CustomResource) -> None:
    assert len(crd_text(resource).encode()) < 200_000


@every_kind
def test_the_text_is_the_definition(resource: CustomResource) -> None:
    assert read_yaml(crd_text(resource)) == definition(resource)


@every_kind
def test_kubernetes_own_model_takes_the_definition(resource: CustomResource) -> None:
    V1CustomResourceDefinition.model_validate(definition(resource))


def test_models_are_found_by_their_short_name() -> None:
    assert definition(SPECULATIVE_MODEL)["spec"]["names"]["shortNames"] == ["specmodel"]


@every_kind
def test_every_kind_is_in_the_category(resource: CustomResource) -> None:
    assert definition(resource)["spec"]["names"]["categories"] == ["specdec"]


def test_autoscalers_find_the_replicas_and_the_pods() -> None:
    assert version(SPECULATIVE_MODEL)["subresources"]["scale"] == {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }


def test_an_artifact_cannot_be_scaled() -> None:
    assert version(MODEL_ARTIFACT)["subresources"] == {"status": {}}

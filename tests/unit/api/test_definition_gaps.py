from __future__ import annotations

import copy
from typing import Any

import pytest

from specdec_operator.api.crd import object_schema
from specdec_operator.api.definition_gaps import fitted, gaps
from specdec_operator.api.v1alpha1.kinds import KINDS, SPECULATIVE_MODEL

Schema = dict[str, Any]

PODS_LABELS = ("properties", "spec", "properties", "pod", "properties", "labels")


@pytest.fixture
def own() -> Schema:
    return {
        "properties": {
            "spec": obj(
                method={"type": "string", "enum": ["Eagle", "Medusa"]},
                pod=obj(labels={"type": "object", "additionalProperties": obj(key={"type": "string"})}),
            ),
            "status": obj(
                items={"type": "array", "items": obj("kind", kind={"type": "string", "enum": ["A", "B"]}, n={})},
                name={"type": "string"},
            ),
        }
    }


def obj(*required: str, **properties: Any) -> Schema:
    return {"type": "object", "properties": properties, "required": list(required)}


def without(own: Schema, *path: str) -> Schema:
    """Return a schema with one key of it taken out."""
    served = copy.deepcopy(own)
    at: Any = served
    for part in path[:-1]:
        at = at[part]
    if isinstance(at, list):
        at.remove(path[-1])
    else:
        del at[path[-1]]
    return served


@pytest.mark.parametrize("resource", KINDS, ids=lambda resource: str(resource.kind))
def test_a_kind_lacks_nothing_of_itself(resource: Any) -> None:
    schema = object_schema(resource)
    assert gaps(schema, copy.deepcopy(schema)) == ()


def test_a_field_of_the_shipped_kind_that_is_not_served_is_named() -> None:
    schema = object_schema(SPECULATIVE_MODEL)
    served = without(schema, "properties", "spec", "properties", "serving", "properties", "kvCache")
    assert gaps(schema, served) == ("spec.serving.kvCache",)


@pytest.mark.parametrize(
    ("path", "gap"),
    [
        (("properties", "spec"), "spec"),
        (("properties", "spec", "properties", "method"), "spec.method"),
        (("properties", "spec", "properties", "method", "enum", "Medusa"), "spec.method: Medusa"),
        (
            (*PODS_LABELS, "additionalProperties", "properties", "key"),
            "spec.pod.labels[].key",
        ),
        (("properties", "status", "properties", "items", "items", "properties", "n"), "status.items[].n"),
    ],
    ids=lambda case: case if isinstance(case, str) else "",
)
def test_what_is_not_served_is_named_by_its_path(own: Schema, path: tuple[str, ...], gap: str) -> None:
    assert gaps(own, without(own, *path)) == (gap,)


def test_a_served_schema_that_knows_more_lacks_nothing(own: Schema) -> None:
    served = copy.deepcopy(own)
    served["properties"]["spec"]["properties"]["future"] = {"type": "string"}
    served["properties"]["spec"]["properties"]["method"]["enum"].append("Later")
    assert gaps(own, served) == ()


def test_an_open_object_lacks_nothing(own: Schema) -> None:
    served = without(own, *PODS_LABELS)
    served["properties"]["spec"]["properties"]["pod"]["x-kubernetes-preserve-unknown-fields"] = True
    assert gaps(own, served) == ()


def test_an_enum_that_was_opened_lacks_nothing(own: Schema) -> None:
    assert gaps(own, without(own, "properties", "spec", "properties", "method", "enum")) == ()


STATUS = {"items": [{"kind": "A", "n": 1}, {"kind": "B", "n": 2}], "name": "x"}


def test_what_is_served_whole_is_kept_whole(own: Schema) -> None:
    assert fitted(STATUS, own["properties"]["status"]) == STATUS


def test_a_field_without_a_place_is_left_out(own: Schema) -> None:
    served = without(own, "properties", "status", "properties", "items", "items", "properties", "n")
    assert fitted(STATUS, served["properties"]["status"]) == {"items": [{"kind": "A"}, {"kind": "B"}], "name": "x"}


def test_an_item_whose_required_value_is_unknown_goes_as_a_whole(own: Schema) -> None:
    served = without(own, *("properties", "status", "properties", "items", "items", "properties", "kind", "enum", "B"))
    assert fitted(STATUS, served["properties"]["status"]) == {"items": [{"kind": "A", "n": 1}], "name": "x"}


def test_a_map_keeps_its_keys() -> None:
    assert fitted({"a": "b"}, {"additionalProperties": {"type": "string"}}) == {"a": "b"}


def test_nothing_is_left_of_what_has_no_place() -> None:
    assert fitted({"a": 1}, obj("b", b={})) is None

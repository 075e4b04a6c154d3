"""Every optional member of a status can go again: each is written, then left out, on the real API server."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from specdec_operator.api.crd import object_schema
from specdec_operator.api.v1alpha1.kinds import KINDS
from specdec_operator.cluster.apply import ensure_status
from specdec_operator.cluster.resources import MODEL_ARTIFACTS, SPECULATIVE_MODELS
from tests.integration.cluster_api import Workplace, workplace

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from specdec_operator.cluster.resources import ResourceType
    from testbed.cluster import Cluster

pytestmark = pytest.mark.controlplane

Json = dict[str, Any]
SPECS: dict[str, Json] = {
    "SpeculativeModel": {
        "target": {"source": {"huggingFace": {"repository": "meta-llama/Llama-3.1-8B-Instruct"}}},
        "speculation": {"method": "None"},
    },
    "ModelArtifact": {
        "type": "Model",
        "key": "a" * 64,
        "image": "example.com/triton:1",
        "claimName": "store",
        "fetch": {"repository": "a/b", "directory": "models/x"},
    },
}
RESOURCES = {"SpeculativeModel": SPECULATIVE_MODELS, "ModelArtifact": MODEL_ARTIFACTS}
SCHEMAS = {kind.kind: object_schema(kind)["properties"]["status"] for kind in KINDS}


def sample(schema: Json) -> Any:
    """Return a value with every member that a schema knows; texts are digests and words at once."""
    match schema.get("type"):
        case "object" if "additionalProperties" in schema:
            return {"num_draft_tokens": sample(schema["additionalProperties"])}
        case "object":
            return {name: sample(member) for name, member in schema.get("properties", {}).items()}
        case "array":
            return [sample(schema["items"])]
        case "integer":
            return max(1, schema.get("minimum", 1))
        case "boolean":
            return True
    return schema["enum"][0] if "enum" in schema else "a" * min(64, schema["maxLength"])


def optional_members(schema: Json, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Return the paths of all members that a schema does not require; `*` is a list's item."""
    if schema.get("type") == "array":
        yield from optional_members(schema["items"], (*path, "*"))
    for name, member in schema.get("properties", {}).items():
        if name not in schema.get("required", ()):
            yield (*path, name)
        yield from optional_members(member, (*path, name))


def without(value: Any, path: tuple[str, ...], *, left: Any) -> Any:
    """Return a copy without the member at a path, or with what is left of it."""
    changed = copy.deepcopy(value)
    place = changed
    for step in path[:-1]:
        place = place[0] if step == "*" else place[step]
    if left is None:
        del place[path[-1]]
    else:
        place[path[-1]] = left
    return changed


@dataclass(frozen=True)
class Member:
    kind: str
    path: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join((self.kind, *self.path))


MEMBERS = [Member(kind, path) for kind, schema in SCHEMAS.items() for path in optional_members(schema)]


def at(schema: Json, path: tuple[str, ...]) -> Json:
    for step in path:
        schema = schema["items"] if step == "*" else schema["properties"][step]
    return schema


def may_be_empty(schema: Json) -> bool:
    """Whether a value without an item fits, and an apply owns its items one by one."""
    keyed = schema.get("x-kubernetes-list-type") == "map"
    return keyed or (schema.get("type") == "object" and not schema.get("required"))


EMPTIED = [member for member in MEMBERS if may_be_empty(at(SCHEMAS[member.kind], member.path))]


@pytest.fixture
async def place(served: Cluster) -> AsyncIterator[Workplace]:
    async with workplace(served) as made:
        yield made
        for resource in RESOURCES.values():
            for live in await made.stranger.list(resource, namespace=made.namespace):
                await made.stranger.delete(resource, namespace=made.namespace, name=live["metadata"]["name"])


async def with_full_status(place: Workplace, resource: ResourceType) -> tuple[Json, Json]:
    """Return an object with every member of its status, and that status."""
    metadata = {"namespace": place.namespace, "name": "any"}
    head = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
    live = await place.stranger.create(resource, {**head, "spec": SPECS[resource.kind]})
    status = sample(SCHEMAS[resource.kind])
    written = await ensure_status(place.api, resource, {**head, "status": status}, live=live)
    assert written.object["status"].keys() == status.keys()
    return written.object, {**head, "status": status}


@pytest.mark.parametrize("member", MEMBERS, ids=str)
async def test_an_optional_member_of_a_status_can_be_left_out_again(place: Workplace, member: Member) -> None:
    resource = RESOURCES[member.kind]
    live, body = await with_full_status(place, resource)
    less = {**body, "status": without(body["status"], member.path, left=None)}
    written = await ensure_status(place.api, resource, less, live=live)
    assert written.changed
    again = await ensure_status(place.api, resource, less, live=written.object)
    assert not again.changed


@pytest.mark.parametrize("member", EMPTIED, ids=str)
async def test_an_optional_map_or_keyed_list_of_a_status_can_become_empty(place: Workplace, member: Member) -> None:
    resource = RESOURCES[member.kind]
    live, body = await with_full_status(place, resource)
    empty = type(sample(at(SCHEMAS[member.kind], member.path)))()
    less = {**body, "status": without(body["status"], member.path, left=empty)}
    written = await ensure_status(place.api, resource, less, live=live)
    assert not (await ensure_status(place.api, resource, less, live=written.object)).changed

"""Owner references of objects that several owners share: added and removed one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from specdec_operator.cluster.api import JsonObject, KubernetesApi
    from specdec_operator.cluster.resources import ResourceType


def live_owner_reference(owner: JsonObject) -> JsonObject:
    """Return the reference to one owner of several.

    Args:
        owner: the owner as the API server returned it.
    """
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
    }


async def add_owner(api: KubernetesApi, resource: ResourceType, live: JsonObject, *, owner: JsonObject) -> JsonObject:
    """Add an owner that is not the controller, if it is not there yet.

    Args:
        api: the API server.
        resource: type of the object.
        live: the object as last read.
        owner: the owner as the API server returned it.

    Returns:
        The object with the owner.

    Raises:
        Conflict: the object changed since it was read.
        NotFound: the object is gone.
    """
    references = _references(live)
    if any(reference["uid"] == owner["metadata"]["uid"] for reference in references):
        return live
    return await _write(api, resource, live, references=[*references, live_owner_reference(owner)])


async def remove_owner(api: KubernetesApi, resource: ResourceType, live: JsonObject, *, owner_uid: str) -> JsonObject:
    """Remove an owner, if it is there; the garbage collector takes an object whose owners are all gone.

    Removing the last reference leaves the object without an owner, which nobody collects: the caller deletes it.

    Args:
        api: the API server.
        resource: type of the object.
        live: the object as last read.
        owner_uid: uid of the owner.

    Returns:
        The object without the owner.

    Raises:
        Conflict: the object changed since it was read.
        NotFound: the object is gone.
    """
    references = _references(live)
    kept = [reference for reference in references if reference["uid"] != owner_uid]
    if len(kept) == len(references):
        return live
    return await _write(api, resource, live, references=kept)


def _references(live: JsonObject) -> list[JsonObject]:
    references: list[JsonObject] = live["metadata"].get("ownerReferences") or []
    return references


async def _write(
    api: KubernetesApi, resource: ResourceType, live: JsonObject, *, references: list[JsonObject]
) -> JsonObject:
    metadata = live["metadata"]
    return await api.patch_json(
        resource,
        namespace=metadata.get("namespace"),
        name=metadata["name"],
        operations=[
            {"op": "add", "path": "/metadata/ownerReferences", "value": references},
            # A stale version is answered by 409.
            {"op": "replace", "path": "/metadata/resourceVersion", "value": metadata["resourceVersion"]},
        ],
    )

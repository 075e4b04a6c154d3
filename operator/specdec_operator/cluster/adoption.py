"""Taking back what is provably ours: an object whose owner reference or labels somebody removed, or orphaned.

The API server keeps who wrote an object (managedFields). One without a controller that this operator wrote, and whose
labels name nobody else, is taken up again; any other is left alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from specdec_operator.cluster.api import JsonObject, KubernetesApi
    from specdec_operator.cluster.resources import ResourceType


def controller_of(live: JsonObject) -> JsonObject | None:
    """Return the controller's owner reference; None if the object has no controller."""
    references: list[JsonObject] = live["metadata"].get("ownerReferences") or []
    return next((reference for reference in references if reference.get("controller")), None)


def is_written_by(live: JsonObject, manager: str) -> bool:
    """Whether a field manager wrote an object, and more of it than its status."""
    entries: list[JsonObject] = live["metadata"].get("managedFields") or []
    return any(entry.get("manager") == manager and not entry.get("subresource") for entry in entries)


def is_stray(live: JsonObject, *, manager: str, labels: Mapping[str, str]) -> bool:
    """Whether an object without a controller is one that this operator made.

    Args:
        live: the object.
        manager: this operator's field manager.
        labels: those that it made the object with; what is left of them must be as it was.
    """
    held = live["metadata"].get("labels") or {}
    same = all(held.get(name, value) == value for name, value in labels.items())
    return controller_of(live) is None and same and is_written_by(live, manager)


async def adopted(api: KubernetesApi, resource: ResourceType, body: JsonObject, *, live: JsonObject) -> JsonObject:
    """Give an object of ours the controller and the labels back that it lacks; return it as stored.

    Raises:
        Conflict: the object changed since it was read.
    """
    metadata, wanted = live["metadata"], body["metadata"]
    labels, references = wanted.get("labels") or {}, wanted.get("ownerReferences") or []
    stray = controller_of(live) is None and is_stray(live, manager=api.field_manager, labels=labels)
    held = metadata.get("labels") or {}
    change: JsonObject = {}
    if any(name not in held for name in labels):
        change["labels"] = {**labels, **held}
    if stray and references:
        change["ownerReferences"] = [*(metadata.get("ownerReferences") or []), *references]
    if not change or "deletionTimestamp" in metadata or not (stray or _has_controller(live, references)):
        return live
    return await api.patch_merge(
        resource,
        namespace=metadata.get("namespace"),
        name=metadata["name"],
        patch={"metadata": {**change, "resourceVersion": metadata["resourceVersion"]}},
    )


def _has_controller(live: JsonObject, references: list[JsonObject]) -> bool:
    controller = controller_of(live)
    return controller is not None and controller["uid"] in {reference["uid"] for reference in references}

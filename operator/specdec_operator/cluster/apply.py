"""Create, then apply: children that are ours are kept as desired, anybody else's are left alone.

A child is made by POST, so that an object that somebody else has under its name is never adopted. POST's ownership is
an ``Update`` entry in managedFields; left there, it would co-own each field and keep alive what later applies drop. It
is therefore rewritten to an ``Apply`` entry once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from specdec_operator.cluster.errors import AlreadyExists, Conflict, NameTaken, NotFound
from specdec_operator.cluster.field_set import FieldSet, merged, restricted
from specdec_operator.cluster.ownership import managed_entry, owned_equal

if TYPE_CHECKING:
    from specdec_operator.cluster.api import JsonObject, KubernetesApi
    from specdec_operator.cluster.resources import ResourceType

CREATE_ATTEMPTS = 3
CLAIM_ATTEMPTS = 3


@dataclass(frozen=True)
class Applied:
    """What an ensure left.

    Attributes:
        object: the object as the API server holds it.
        changed: whether a write was sent.
    """

    object: JsonObject
    changed: bool


def controller_of(live: JsonObject) -> JsonObject | None:
    """Return the controller's owner reference; None if the object has no controller."""
    references: list[JsonObject] = live["metadata"].get("ownerReferences") or []
    return next((reference for reference in references if reference.get("controller")), None)


async def ensure_created(
    api: KubernetesApi, resource: ResourceType, body: JsonObject, *, owner_uid: str | None
) -> JsonObject:
    """Create an object that is never changed afterwards, or return the one that is there.

    The one that is there may be on its way out (``metadata.deletionTimestamp``).

    Args:
        api: the API server.
        resource: the object's type.
        body: the object.
        owner_uid: uid of the controller in its owner references; None if it has no controller.

    Raises:
        NameTaken: the name belongs to an object with another controller.
    """
    return (await _created_or_read(api, resource, body, owner_uid=owner_uid)).object


async def ensure_applied(
    api: KubernetesApi, resource: ResourceType, body: JsonObject, *, owner_uid: str, live: JsonObject | None
) -> Applied:
    """Make an object what ``body`` says; fields that others own stay as they are.

    An object that is on its way out is returned untouched.

    Args:
        api: the API server.
        resource: the object's type.
        body: the object.
        owner_uid: uid of the controller in its owner references.
        live: the object as last read; None if it was not there.

    Raises:
        NameTaken: the name belongs to an object with another controller.
        Conflict: the object changed, or was replaced by another, since it was read.
    """
    if live is None:
        made = await _created_or_read(api, resource, body, owner_uid=owner_uid)
        if made.changed:
            live = await _claim(api, resource, body, created=made.object)
            return replace(await _applied(api, resource, body, live=live), changed=True)
        live = made.object
    _check_controller(resource, live, owner_uid=owner_uid)
    if "deletionTimestamp" in live["metadata"]:
        return Applied(live, changed=False)
    return await _applied(api, resource, body, live=live)


async def ensure_status(api: KubernetesApi, resource: ResourceType, body: JsonObject, *, live: JsonObject) -> Applied:
    """Make an object's status what ``body`` says.

    Args:
        api: the API server.
        resource: the object's type.
        body: apiVersion, kind, name and namespace, and the whole status.
        live: the object as last read.

    Raises:
        Conflict: the object was replaced by another of its name since it was read.
        NotFound: the object is gone.
    """
    if owned_equal(body, live, manager=api.field_manager, subresource="status"):
        return Applied(live, changed=False)
    return Applied(await api.apply_status(resource, _with_uid(body, live)), changed=True)


async def _applied(api: KubernetesApi, resource: ResourceType, body: JsonObject, *, live: JsonObject) -> Applied:
    changed = False
    update = managed_entry(live, manager=api.field_manager, operation="Update")
    if update is not None:
        # All of it, not only what body has: what it owned and body dropped must go with the apply below.
        live = await _rewrite_entry(api, resource, live, fields=update["fieldsV1"])
        changed = True
    if owned_equal(body, live, manager=api.field_manager):
        return Applied(live, changed=changed)
    return Applied(await api.apply(resource, _with_uid(body, live), force=True), changed=True)


async def _created_or_read(
    api: KubernetesApi, resource: ResourceType, body: JsonObject, *, owner_uid: str | None
) -> Applied:
    metadata = body["metadata"]
    for _ in range(CREATE_ATTEMPTS - 1):
        try:
            return Applied(await api.create(resource, body), changed=True)
        except AlreadyExists:
            pass
        try:
            live = await api.get(resource, namespace=metadata.get("namespace"), name=metadata["name"])
        except NotFound:
            # It was deleted between the two requests.
            continue
        _check_controller(resource, live, owner_uid=owner_uid)
        return Applied(live, changed=False)
    return Applied(await api.create(resource, body), changed=True)


async def _claim(api: KubernetesApi, resource: ResourceType, body: JsonObject, *, created: JsonObject) -> JsonObject:
    """Rewrite the entry of the create just done to that of an apply of the same body.

    Controllers write to a new object at once, so a conflict is answered by reading it again. If it stays, or the
    process dies here, the next :func:`ensure_applied` rewrites the entry.
    """
    live = created
    for _ in range(CLAIM_ATTEMPTS):
        update = managed_entry(live, manager=api.field_manager, operation="Update")
        if update is None:
            return live
        try:
            return await _rewrite_entry(api, resource, live, fields=restricted(update["fieldsV1"], body))
        except Conflict:
            metadata = live["metadata"]
            live = await api.get(resource, namespace=metadata.get("namespace"), name=metadata["name"])
        if live["metadata"]["uid"] != created["metadata"]["uid"]:
            return created
    return live


async def _rewrite_entry(
    api: KubernetesApi, resource: ResourceType, live: JsonObject, *, fields: FieldSet
) -> JsonObject:
    """Replace our Update entry by an Apply entry that owns ``fields`` and what our Apply entry owns already."""
    metadata = live["metadata"]
    ours = [managed_entry(live, manager=api.field_manager, operation=name) for name in ("Update", "Apply")]
    update, apply = ours
    others = [entry for entry in metadata["managedFields"] if entry not in ours]
    owned = merged(fields, (apply or {}).get("fieldsV1") or {})
    claimed = {**(update or {}), "operation": "Apply", "fieldsV1": owned}
    return await api.patch_json(
        resource,
        namespace=metadata.get("namespace"),
        name=metadata["name"],
        operations=[
            {"op": "replace", "path": "/metadata/managedFields", "value": [claimed, *others]},
            # A stale version is answered by 409 here; a failed test operation would be an indistinct 422.
            {"op": "replace", "path": "/metadata/resourceVersion", "value": metadata["resourceVersion"]},
        ],
    )


def _check_controller(resource: ResourceType, live: JsonObject, *, owner_uid: str | None) -> None:
    controller = controller_of(live)
    if (controller["uid"] if controller else None) == owner_uid:
        return
    raise NameTaken(
        kind=resource.kind,
        namespace=live["metadata"].get("namespace", ""),
        name=live["metadata"]["name"],
        controller=f"{controller['kind']}/{controller['name']}" if controller else None,
    )


def _with_uid(body: JsonObject, live: JsonObject) -> JsonObject:
    """Return body for this very object: one that took its name meanwhile answers by a conflict."""
    return {**body, "metadata": {**body["metadata"], "uid": live["metadata"]["uid"]}}

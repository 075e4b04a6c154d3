"""Create, then apply: children that are ours are kept as desired, anybody else's are left alone.

A child is made by POST, so that an object that somebody else has under its name is never adopted. POST's ownership is
an ``Update`` entry in managedFields; left there, it would co-own each field and keep alive what later applies drop. It
is therefore rewritten to an ``Apply`` entry once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from specdec_operator.cluster.adoption import adopted, controller_of
from specdec_operator.cluster.errors import AlreadyExists, ApiError, Conflict, Invalid, NameTaken, NotFound
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


async def ensure_created(
    api: KubernetesApi,
    resource: ResourceType,
    body: JsonObject,
    *,
    owner_uid: str | None,
    live: JsonObject | None = None,
) -> JsonObject:
    """Create an object that is never changed afterwards, or return the one that is there; a stray of ours is taken up.

    The one that is there may be on its way out (``metadata.deletionTimestamp``).

    Args:
        api: the API server.
        resource: the object's type.
        body: the object.
        owner_uid: uid of the controller in its owner references; None if it has no controller.
        live: the object as last read; then nothing is sent. None: it was not there, or nobody looked.

    Raises:
        NameTaken: the name belongs to an object with another controller.
    """
    if live is not None:
        live = await adopted(api, resource, body, live=live)
        _check_controller(resource, live, owner_uid=owner_uid)
        return live
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
            claimed = await _claimed(api, resource, made.object, created_from=body)
            return replace(await _applied(api, resource, body, live=claimed.object), changed=True)
        live = made.object
    live = await adopted(api, resource, body, live=live)
    _check_controller(resource, live, owner_uid=owner_uid)
    if "deletionTimestamp" in live["metadata"]:
        return Applied(live, changed=False)
    return await _applied(api, resource, body, live=live)


async def ensure_status(api: KubernetesApi, resource: ResourceType, body: JsonObject, *, live: JsonObject) -> Applied:
    """Make an object's status what ``body`` says; what is empty is left out of it.

    An apply that keeps a map or a keyed list, but none of the items that were its own, leaves null in its place: the
    API server refuses that.

    Args:
        api: the API server.
        resource: the object's type.
        body: apiVersion, kind, name and namespace, and the whole status.
        live: the object as last read.

    Raises:
        Conflict: the object changed since it was read, so that the status may not be true of it.
        NotFound: the object is gone.
    """
    body = {**body, "status": _filled(body["status"])}
    if owned_equal(body, live, manager=api.field_manager, subresource="status"):
        return Applied(live, changed=False)
    # A status apply ignores the uid; the version also says that it is the same object.
    version = {"resourceVersion": live["metadata"]["resourceVersion"]}
    return Applied(await api.apply_status(resource, _with(body, version)), changed=True)


def _filled(status: JsonObject) -> JsonObject:
    """Return a status without empty members, and without empty maps inside the others."""
    return {name: member for name, member in _without_empty_maps(status).items() if member != []}


def _without_empty_maps(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_empty_maps(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {name: _without_empty_maps(member) for name, member in value.items()}
    return {name: member for name, member in kept.items() if member != {}}


async def _applied(api: KubernetesApi, resource: ResourceType, body: JsonObject, *, live: JsonObject) -> Applied:
    claimed = await _claimed(api, resource, live, created_from=None)
    if owned_equal(body, claimed.object, manager=api.field_manager):
        return claimed
    # An object that took the name meanwhile has another uid, and stays untouched.
    same = _with(body, {"uid": live["metadata"]["uid"]})
    try:
        return Applied(await api.apply(resource, same, force=True), changed=True)
    except Invalid as error:
        raise _replaced_or(error) from error


def _replaced_or(error: Invalid) -> ApiError:
    """Return a conflict if an object's uid is not the one that was applied to; else the error itself."""
    causes: list[JsonObject] = error.details.get("causes") or []
    if not any(cause.get("field") == "metadata.uid" for cause in causes):
        return error
    return Conflict(status=409, reason="Replaced", message=error.message, details=error.details, request=error.request)


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
        live = await adopted(api, resource, body, live=live)
        _check_controller(resource, live, owner_uid=owner_uid)
        return Applied(live, changed=False)
    return Applied(await api.create(resource, body), changed=True)


async def _claimed(
    api: KubernetesApi, resource: ResourceType, live: JsonObject, *, created_from: JsonObject | None
) -> Applied:
    """Rewrite the Update entry that our create left, if it is still there, to an Apply entry.

    Args:
        api: the API server.
        resource: the object's type.
        live: the object as last read.
        created_from: what the create just done was given. None: not known, so the entry is taken over whole, and what
            the next apply lacks of it goes.
    """
    for _ in range(CLAIM_ATTEMPTS - 1):
        try:
            return await _claim(api, resource, live, created_from=created_from)
        except (Conflict, Invalid):
            # A failed test of the patch is Invalid: somebody changed managedFields since.
            live = await _read_again(api, resource, live)
    return await _claim(api, resource, live, created_from=created_from)


async def _claim(
    api: KubernetesApi, resource: ResourceType, live: JsonObject, *, created_from: JsonObject | None
) -> Applied:
    update = managed_entry(live, manager=api.field_manager, operation="Update")
    if update is None:
        return Applied(live, changed=False)
    fields = update["fieldsV1"] if created_from is None else restricted(update["fieldsV1"], created_from)
    operations = _claim_operations(
        live, update, managed_entry(live, manager=api.field_manager, operation="Apply"), fields
    )
    metadata = live["metadata"]
    patched = await api.patch_json(
        resource, namespace=metadata.get("namespace"), name=metadata["name"], operations=operations
    )
    return Applied(patched, changed=True)


def _claim_operations(
    live: JsonObject, update: JsonObject, apply: JsonObject | None, fields: FieldSet
) -> list[JsonObject]:
    """Return the patch that makes an Update entry an Apply entry of ``fields``, and joins the Apply entry there is.

    It tests what it rests on rather than the resourceVersion: new objects are written to by their controllers all the
    time, and the API server repeats such a patch by itself.
    """
    entries: list[JsonObject] = live["metadata"]["managedFields"]
    path = f"/metadata/managedFields/{entries.index(update)}"
    owned = merged(fields, apply["fieldsV1"]) if apply is not None else fields
    operations = [
        {"op": "test", "path": "/metadata/uid", "value": live["metadata"]["uid"]},
        {"op": "test", "path": f"{path}/manager", "value": update["manager"]},
        {"op": "test", "path": f"{path}/fieldsV1", "value": update["fieldsV1"]},
        {"op": "replace", "path": f"{path}/operation", "value": "Apply"},
        {"op": "replace", "path": f"{path}/fieldsV1", "value": owned},
    ]
    if apply is None:
        return operations
    joined = f"/metadata/managedFields/{entries.index(apply)}"
    test = {"op": "test", "path": f"{joined}/fieldsV1", "value": apply["fieldsV1"]}
    return [test, *operations, {"op": "remove", "path": joined}]


async def _read_again(api: KubernetesApi, resource: ResourceType, stale: JsonObject) -> JsonObject:
    metadata = stale["metadata"]
    live = await api.get(resource, namespace=metadata.get("namespace"), name=metadata["name"])
    if live["metadata"]["uid"] != metadata["uid"]:
        message = f"{resource.kind} {metadata['name']} was replaced by another of its name"
        raise Conflict(status=409, reason="Replaced", message=message, request=f"get {resource.qualified_name}")
    return live


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


def _with(body: JsonObject, metadata: JsonObject) -> JsonObject:
    return {**body, "metadata": {**body["metadata"], **metadata}}

"""What others put into list items that are this operator's as a whole, such as its containers in a pod template.

An apply leaves alone what another manager owns beside it. That is right for a sidecar, and wrong inside a container
that this operator answers for: another command there runs something else than what was checked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from specdec_operator.cluster.field_set import FIELD, ListItem, children

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from specdec_operator.cluster.api import JsonObject, KubernetesApi
    from specdec_operator.cluster.field_set import FieldSet
    from specdec_operator.cluster.resources import ResourceType


async def without_foreign(
    api: KubernetesApi,
    resource: ResourceType,
    live: JsonObject,
    *,
    desired: JsonObject,
    lists: Sequence[tuple[str, ...]],
) -> tuple[JsonObject, list[str]]:
    """Undo what other managers did inside this operator's items of some lists; the object as stored, and where.

    It comes before an apply, which might be invalid beside what others put there.

    Args:
        api: the API server.
        resource: the object's type.
        live: the object as last read.
        desired: what is to be applied.
        lists: paths of lists whose items have names; items that `desired` has not are left alone.

    Raises:
        Invalid: the object changed since it was read.
    """
    changes = restorations(live, desired=desired, manager=api.field_manager, lists=lists)
    if not changes or "deletionTimestamp" in live["metadata"]:
        return live, []
    metadata = live["metadata"]
    tests = [
        {"op": "test", "path": f"/metadata/{field}", "value": metadata[field]} for field in ("uid", "resourceVersion")
    ]
    stored = await api.patch_json(
        resource, namespace=metadata["namespace"], name=metadata["name"], operations=[*tests, *changes]
    )
    return stored, [change["path"] for change in changes]


def restorations(
    live: JsonObject, *, desired: JsonObject, manager: str, lists: Sequence[tuple[str, ...]]
) -> list[JsonObject]:
    """JSON patch operations: a field of an own item that holds something foreign becomes as desired, or goes."""
    operations: dict[str, JsonObject] = {}
    for entry in live["metadata"].get("managedFields") or ():
        if entry.get("manager") == manager or entry.get("subresource"):
            continue
        for path in lists:
            fields = _at(entry.get("fieldsV1") or {}, [f"{FIELD}{name}" for name in path]) or {}
            for operation in _inside(_at(desired, path), _at(live, path), fields, "/" + "/".join(path)):
                operations[operation["path"]] = operation
    return list(operations.values())


def _inside(
    desired: Sequence[JsonObject] | None, live: Sequence[JsonObject] | None, fields: FieldSet, path: str
) -> Iterator[JsonObject]:
    ours = {item["name"]: item for item in desired or ()}
    for index, item in enumerate(live or ()):
        wanted = ours.get(item.get("name"))
        if wanted is None:
            continue
        theirs = fields.get(f'k:{{"name":"{item["name"]}"}}') or {}
        for name in children(theirs):
            field = name.removeprefix(FIELD)
            if field in item and _holds_foreign(wanted.get(field), item[field], theirs[name]):
                operation = {"path": f"{path}/{index}/{field}"}
                if field in wanted:
                    yield {"op": "replace", **operation, "value": wanted[field]}
                else:
                    yield {"op": "remove", **operation}


def _holds_foreign(desired: Any, live: Any, fields: FieldSet) -> bool:
    """Whether something is there that another manager owns and that is not desired."""
    if desired is None:
        return True
    for name in children(fields):
        step = _step(name, live)
        if step is not None and _holds_foreign(_member(desired, name, step), live[step], fields[name]):
            return True
    return False


def _step(name: str, live: Any) -> str | int | None:
    """The key or index at which a field set's child stands; None if it is not there any more."""
    if isinstance(live, dict):
        field = name.removeprefix(FIELD)
        return field if field in live else None
    item = ListItem.parse(name)
    matching = (index for index, each in enumerate(live) if item and item.matches(each, defaulted=True))
    return next(matching, None) if isinstance(live, list) else None


def _member(desired: Any, name: str, step: str | int) -> Any:
    if isinstance(desired, dict):
        return desired.get(step)
    item = ListItem.parse(name)
    return next((each for each in desired or () if item and item.matches(each, defaulted=True)), None)


def _at(document: Any, path: Sequence[str]) -> Any:
    for name in path:
        document = document.get(name) if isinstance(document, dict) else None
    return document

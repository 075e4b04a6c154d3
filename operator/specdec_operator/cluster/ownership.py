"""The skip rule: whether an apply of an object would change anything.

It needs no schema and no dry run: the field set that the API server keeps for our last apply says which paths we own
and how list items are keyed. Maps and lists that are owned as a whole are compared as a whole, so whoever renders them
writes what the API server would fill in inside them (such as ``fieldRef.apiVersion``), and quantities in their
canonical form.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from specdec_operator.cluster.field_set import FIELD, FieldSet, ListItem, children, paired

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specdec_operator.cluster.api import JsonObject

IDENTITY_FIELDS = frozenset({"apiVersion", "kind"})
SERVER_METADATA = frozenset(
    {
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "managedFields",
        "selfLink",
    }
)


def owned_equal(desired: JsonObject, live: JsonObject, *, manager: str, subresource: str = "") -> bool:
    """Whether the API server holds exactly what an apply of ``desired`` by ``manager`` would leave.

    True if and only if each leaf of ``desired`` is owned by the manager through an apply and equal in ``live``, and
    each leaf that the manager owns is in ``desired``. What others own plays no part.

    Args:
        desired: the object to apply.
        live: the object as the API server returned it.
        manager: field manager of the applies.
        subresource: ``status`` to compare the status alone; empty for all but the status.
    """
    entry = managed_entry(live, manager=manager, operation="Apply", subresource=subresource)
    if entry is None or entry.get("apiVersion") != desired["apiVersion"]:
        return False
    uid = desired.get("metadata", {}).get("uid")
    if uid not in {None, live["metadata"].get("uid")}:
        return False
    fields = entry.get("fieldsV1") or {}
    return _map_equal(_governed(desired, subresource), _governed(live, subresource), fields)


def managed_entry(live: JsonObject, *, manager: str, operation: str, subresource: str = "") -> JsonObject | None:
    """Return a manager's entry in managedFields; None if it has none.

    Args:
        live: the object.
        manager: its name.
        operation: ``Apply`` or ``Update``.
        subresource: ``status``, or empty for the object itself.
    """
    wanted = (manager, operation, subresource)
    entries: list[JsonObject] = live["metadata"].get("managedFields") or []
    for entry in entries:
        if (entry.get("manager"), entry.get("operation"), entry.get("subresource", "")) == wanted:
            return entry
    return None


def _governed(body: JsonObject, subresource: str) -> JsonObject:
    if subresource:
        return {subresource: body[subresource]} if subresource in body else {}
    metadata = {name: value for name, value in body.get("metadata", {}).items() if name not in SERVER_METADATA}
    hidden = IDENTITY_FIELDS | {"metadata", "status"}
    rest = {name: value for name, value in body.items() if name not in hidden}
    return {"metadata": metadata, **rest} if metadata else rest


def _equal(desired: Any, live: Any, fields: FieldSet) -> bool:
    if not fields:
        # An empty map says that it is there, and nothing about what others put into it.
        return desired == live or (desired == {} and isinstance(live, dict | None)) or (not desired and live is None)
    if isinstance(desired, dict) and isinstance(live, dict):
        return _map_equal(desired, live, fields)
    if isinstance(desired, list) and isinstance(live, list):
        return _list_equal(desired, live, fields)
    return False


def _map_equal(desired: JsonObject, live: JsonObject, fields: FieldSet) -> bool:
    given = {f"{FIELD}{name}" for name in desired}
    if not given.issuperset(children(fields)):
        return False
    return all(_field_equal(value, live.get(name), fields.get(f"{FIELD}{name}")) for name, value in desired.items())


def _field_equal(desired: Any, live: Any, fields: FieldSet | None) -> bool:
    if fields is None:
        # Nobody owns an empty list of keyed items: it says nothing.
        return desired == [] and not live
    return _equal(desired, live, fields)


def _list_equal(desired: Sequence[Any], live: Sequence[Any], fields: FieldSet) -> bool:
    pairs = paired(desired, fields)
    if None in pairs or len(pairs) != len(children(fields)):
        return False
    position = -1
    for item, entry in zip(desired, pairs, strict=True):
        found = _position(entry, live, start=position + 1) if entry else None
        if entry is None or found is None or not _equal(item, live[found], fields[entry.path]):
            return False
        position = found
    return True


def _position(entry: ListItem, live: Sequence[Any], *, start: int) -> int | None:
    """Return where an item stands among those after the one before it: order counts."""
    positions = range(start, len(live))
    return next((index for index in positions if entry.matches(live[index], defaulted=True)), None)

"""Field sets of managedFields (FieldsV1): which leaf paths of an object a manager owns.

A field set is a tree. A child's name says what it stands for: ``f:name`` a field, ``k:{...}`` the list item with these
key fields, ``v:value`` an item of a set, ``.`` the node itself. An empty node is a leaf: a scalar, or a map or list
that is owned as a whole. The list keys stand in the tree, so reading it needs no schema.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

FieldSet = dict[str, Any]

SELF = "."
FIELD = "f:"
KEYED_ITEM = "k:"
SET_ITEM = "v:"


@dataclass(frozen=True)
class ListItem:
    """One list item that a field set speaks of.

    Attributes:
        path: its name in the field set.
        key: its key fields, for an item of a list-map.
        value: itself, for an item of a set.
    """

    path: str
    key: dict[str, Any] | None
    value: Any = None

    @classmethod
    def parse(cls, path: str) -> ListItem | None:
        """Read the name of a child; None if it names no list item."""
        content = path[len(KEYED_ITEM) :]
        if path.startswith(KEYED_ITEM):
            return cls(path, key=json.loads(content))
        if path.startswith(SET_ITEM):
            return cls(path, key=None, value=json.loads(content))
        return None

    def matches(self, item: Any, *, defaulted: bool) -> bool:
        """Whether a list's item is this one.

        Args:
            item: the item.
            defaulted: a key field that the item doesn't give is taken to have its default, whatever that is.
        """
        if self.key is None:
            return bool(item == self.value)
        if not isinstance(item, dict):
            return False
        return all((defaulted and field not in item) or item.get(field) == value for field, value in self.key.items())


def children(fields: FieldSet) -> list[str]:
    """Return the names of a node's children."""
    return [path for path in fields if path != SELF]


def list_items(fields: FieldSet) -> list[ListItem]:
    """Return the list items among a node's children."""
    return [item for item in map(ListItem.parse, children(fields)) if item is not None]


def paired(items: Sequence[Any], fields: FieldSet) -> list[ListItem | None]:
    """Return for each item of a list the child that stands for it; None where there is none.

    Items that give all their key fields choose first, so that ``{port: 53}`` does not take the place of
    ``{port: 53, protocol: UDP}``.
    """
    remaining = list_items(fields)
    pairs: list[ListItem | None] = [None] * len(items)
    for defaulted in (False, True):
        for index, item in enumerate(items):
            found = next((entry for entry in remaining if entry.matches(item, defaulted=defaulted)), None)
            if pairs[index] is None and found is not None:
                pairs[index] = found
                remaining.remove(found)
    return pairs


def merged(first: FieldSet, second: FieldSet) -> FieldSet:
    """Return the union of two field sets."""
    union = dict(first)
    for path, fields in second.items():
        union[path] = merged(union[path], fields) if path in union else fields
    return union


def restricted(fields: FieldSet, body: Any) -> FieldSet:
    """Return the part of a field set that an apply of ``body`` would own.

    Args:
        fields: what a create of ``body`` owns: its own fields and those that the API server filled in.
        body: an object, or the part of it that stands at this node.
    """
    if isinstance(body, dict):
        given = {f"{FIELD}{name}": value for name, value in body.items()}
        return {path: restricted(child, given[path]) for path, child in fields.items() if path in given}
    if isinstance(body, list):
        pairs = zip(body, paired(body, fields), strict=True)
        return {entry.path: _restricted_item(fields[entry.path], item) for item, entry in pairs if entry is not None}
    return {}


def _restricted_item(fields: FieldSet, item: Any) -> FieldSet:
    own: FieldSet = {SELF: {}} if SELF in fields else {}
    return own | restricted(fields, item)

"""What kstatus says of a custom resource, computed as its library does for kinds that it has no rules of its own for.

kstatus is the convention (and the Go library of cli-utils) by which Flux, kpt and others tell whether an object has
become what its manifest asks for. For a custom resource it looks, in this order, at

1. `metadata.deletionTimestamp`: Terminating;
2. `status.observedGeneration`, where there is one: InProgress unless it is `metadata.generation`;
3. the conditions Reconciling and Stalled, in the order of the list: the first that is True says InProgress or Failed;
4. the condition Ready: Current if True, InProgress if False or Unknown;
5. nothing of these: Current.
"""

from __future__ import annotations

from typing import Any, Literal

Verdict = Literal["InProgress", "Failed", "Current", "Terminating"]


class MalformedObject(ValueError):  # noqa: N818 - it says what is wrong
    """An object that kstatus can't judge."""


def verdict(document: dict[str, Any]) -> Verdict:
    """Judge an object with its status, as the API server returns it.

    Raises:
        MalformedObject: A field has another type than it must have.
    """
    metadata, status = _mapping(document, "metadata"), _mapping(document, "status")
    if metadata.get("deletionTimestamp"):
        return "Terminating"
    if _behind(metadata, status):
        return "InProgress"
    conditions = status.get("conditions") or []
    if not isinstance(conditions, list):
        raise MalformedObject("status.conditions is no list")
    return _standard(conditions) or _ready(conditions) or "Current"


def _mapping(document: dict[str, Any], field: str) -> dict[str, Any]:
    found = document.get(field, {})
    if not isinstance(found, dict):
        raise MalformedObject(f"{field} is no mapping")
    return found


def _behind(metadata: dict[str, Any], status: dict[str, Any]) -> bool:
    if "generation" not in metadata or "observedGeneration" not in status:
        return False
    generations = (metadata["generation"], status["observedGeneration"])
    if not all(isinstance(each, int) for each in generations):
        raise MalformedObject("metadata.generation or status.observedGeneration is no integer")
    return len(set(generations)) == 2


def _standard(conditions: list[dict[str, Any]]) -> Verdict | None:
    for condition in conditions:
        if condition.get("status") == "True" and condition.get("type") in ("Reconciling", "Stalled"):
            return "InProgress" if condition["type"] == "Reconciling" else "Failed"
    return None


def _ready(conditions: list[dict[str, Any]]) -> Verdict | None:
    said = [condition.get("status") for condition in conditions if condition.get("type") == "Ready"]
    words: dict[object, Verdict] = {"True": "Current", "False": "InProgress", "Unknown": "InProgress"}
    return next((words[each] for each in said if each in words), None)

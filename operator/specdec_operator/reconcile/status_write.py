"""Writing a status. What the API server refuses of it is left out and said: a status is never stuck in the past."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Any, Final

from specdec_operator.cluster.apply import ensure_status
from specdec_operator.cluster.errors import BadRequest, Invalid
from specdec_operator.reconcile.conditions import shortened
from specdec_operator.reconcile.context import timestamp

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from specdec_operator.cluster.api import JsonObject
    from specdec_operator.cluster.errors import ApiError
    from specdec_operator.cluster.resources import ResourceType
    from specdec_operator.reconcile.context import Context

STATUS_REJECTED: Final = "StatusRejected"
_MEMBER: Final = re.compile(r"^status\.(\w+)")
_INDEX: Final = re.compile(r"\[\d+\]")
_SUMS: Final = ("Ready", "Reconciling", "Stalled")

_log = logging.getLogger(__name__)


async def write_status(context: Context, resource: ResourceType, status: JsonObject, *, live: JsonObject) -> JsonObject:
    """Write a status, whole or as much of it as the API server takes; return the object as stored.

    Args:
        context: the reconcilers' surroundings.
        resource: the object's type.
        status: all of it.
        live: the object as last read.

    Raises:
        Conflict: the object changed since it was read.
        NotFound: the object is gone.
    """
    fitted = context.definitions.fitted(resource.kind, status)
    try:
        return await _ensure(context, resource, fitted, live=live)
    except (Invalid, BadRequest) as refused:
        why = _in_words(refused)
        _log.error("%s %s: %s", resource.kind, live["metadata"]["name"], why)
        await context.events.record(live, kind="Warning", reason=STATUS_REJECTED, note=why, action="Reconcile")
        for kept in _kept(fitted, live, refused):
            said = _rejected(kept, live, why, with_state="state" in status, now=timestamp(context.now()))
            try:
                return await _ensure(context, resource, said, live=live)
            except (Invalid, BadRequest):
                continue
        raise


async def _ensure(context: Context, resource: ResourceType, status: JsonObject, *, live: JsonObject) -> JsonObject:
    metadata = live["metadata"]
    body = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": metadata["name"], "namespace": metadata["namespace"]},
        "status": status,
    }
    applied = await ensure_status(context.api, resource, body, live=live)
    context.own_writes.note(applied)
    return applied.object


def _kept(status: JsonObject, live: JsonObject, refused: ApiError) -> Iterator[JsonObject]:
    """What may be left of a status, the most of it first: all but the refused members, what is stored, nothing."""
    members = {found[1] for cause in _causes(refused) if (found := _MEMBER.match(cause.get("field") or ""))}
    if members:
        yield {name: value for name, value in status.items() if name not in members}
    yield live.get("status") or {}
    yield {}


def _rejected(kept: JsonObject, live: JsonObject, why: str, *, with_state: bool, now: str) -> JsonObject:
    """What is kept of a status, and that it is not all."""
    generation = live["metadata"]["generation"]
    before = _by_type((live.get("status") or {}).get("conditions") or ())
    others = [c for c in kept.get("conditions") or () if c["type"] not in _SUMS]
    sums = []
    for kind, status in (("Ready", "False"), ("Stalled", "True")):
        held = before.get(kind, {})
        since = held["lastTransitionTime"] if held.get("status") == status else now
        said = {"type": kind, "status": status, "reason": STATUS_REJECTED, "message": why}
        sums.append({**said, "lastTransitionTime": since, "observedGeneration": generation})
    state = {"state": "Failed", "reason": STATUS_REJECTED, "message": why} if with_state else {}
    return {**kept, **state, "conditions": [*others, *sums], "observedGeneration": generation}


def _by_type(conditions: Iterable[JsonObject]) -> dict[str, JsonObject]:
    return {condition["type"]: condition for condition in conditions}


def _in_words(refused: ApiError) -> str:
    # The order of the causes, and places in merged lists, differ from one answer to the next.
    causes = sorted(
        {f"{_INDEX.sub('[]', cause.get('field') or '')}: {cause.get('message')}" for cause in _causes(refused)}
    )
    return shortened(f"the API server refuses this object's status: {'; '.join(causes) or refused.message}")


def _causes(refused: ApiError) -> list[dict[str, Any]]:
    return refused.details.get("causes") or []

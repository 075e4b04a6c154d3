"""What serving pods do not find in the store though it was made: a directory that somebody deleted or damaged. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from specdec_operator.pod.termination import Failed, MessageCut, decode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from specdec_operator.cluster.api import JsonObject

KINDS: dict[str, Literal["Model", "Engine"]] = {
    "ModelMissing": "Model",
    "ModelDamaged": "Model",
    "UnreadableModel": "Model",
    "WeightsMissing": "Model",
    "EngineMissing": "Engine",
    "EngineDamaged": "Engine",
}
"""Reasons of the programs in serving pods that look at what is loaded, and the artifacts that they put in doubt."""


@dataclass(frozen=True, kw_only=True)
class Lost:
    """Content that a pod did not find.

    Attributes:
        kind: The type of the artifacts in doubt.
        at: When the pod looked, as Kubernetes writes times.
    """

    kind: Literal["Model", "Engine"]
    at: str


def lost_content(pods: Iterable[JsonObject]) -> tuple[Lost, ...]:
    """What the pods' last looks did not find, each kind once, at the latest time."""
    latest: dict[Literal["Model", "Engine"], str] = {}
    for ended in _ended(pods):
        kind = KINDS.get(_reason(ended))
        if kind:
            latest[kind] = max(latest.get(kind, ""), ended.get("finishedAt") or "")
    return tuple(Lost(kind=kind, at=at) for kind, at in latest.items())


def _ended(pods: Iterable[JsonObject]) -> Iterator[JsonObject]:
    for pod in pods:
        of_pod = pod.get("status", {})
        # The check, and the launcher: a container that starts again does so without a check before it.
        for status in [*(of_pod.get("initContainerStatuses") or []), *(of_pod.get("containerStatuses") or [])]:
            state, last = status.get("state") or {}, status.get("lastState") or {}
            if ended := state.get("terminated") or last.get("terminated"):
                yield ended


def _reason(ended: JsonObject) -> str:
    try:
        outcome = decode(ended.get("message") or "")
    except MessageCut:
        return ""
    return outcome.reason if isinstance(outcome, Failed) else ""

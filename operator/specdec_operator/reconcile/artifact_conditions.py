"""An artifact's state as conditions, for tools that read no other words: kstatus, `kubectl wait`, Argo CD. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specdec_operator.api.v1alpha1.status import Condition

if TYPE_CHECKING:
    from collections.abc import Iterable

    from specdec_operator.api.v1alpha1.model_artifact import ModelArtifactStatus
    from specdec_operator.api.v1alpha1.status import ConditionType


def conditions_of(
    status: ModelArtifactStatus, before: Iterable[Condition], *, generation: int, now: str
) -> list[Condition]:
    """Ready always; Reconciling while a Job runs or is waited for, Stalled when only a request to retry can help.

    The transition time of a condition moves only when its status does.
    """
    motion: list[ConditionType] = []
    if status.state != "Ready":
        motion.append("Stalled" if status.state == "Failed" else "Reconciling")
    held = {condition.type: condition for condition in before}
    wanted: list[tuple[ConditionType, bool]] = [("Ready", status.state == "Ready"), *((kind, True) for kind in motion)]
    found = []
    for kind, holds in wanted:
        said = "True" if holds else "False"
        earlier = held.get(kind)
        since = earlier.last_transition_time if earlier and earlier.status == said else now
        found.append(_condition(kind, said, status, since=since, generation=generation))
    return found


def _condition(kind: str, said: str, status: ModelArtifactStatus, *, since: str, generation: int) -> Condition:
    return Condition.model_validate(
        {
            "type": kind,
            "status": said,
            "reason": status.reason,
            "message": status.message,
            "lastTransitionTime": since,
            "observedGeneration": generation,
        }
    )

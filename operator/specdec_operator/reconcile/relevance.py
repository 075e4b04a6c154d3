"""Which states of pods and Jobs can change what a run does. Pure.

A pod on its way to its node, and a Job on its way to its end, change several times in ways that say nothing. What is
left out here is seen late, not never: a run looks at what it waits for again within seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from specdec_operator.reconcile.diagnosis import diagnose_pod
from specdec_operator.resources.labels import ARTIFACT

if TYPE_CHECKING:
    from specdec_operator.cluster.api import JsonObject

_ENDS = frozenset({"Complete", "Failed"})
_PHASES_OF_THE_END = frozenset({"Succeeded", "Failed"})


def is_relevant(plural: str, child: JsonObject) -> bool:
    """Whether a child that is there is in a state that a run acts on.

    Args:
        plural: its resource.
        child: the object.
    """
    if "deletionTimestamp" in child["metadata"]:
        return True
    if plural == "jobs":
        return any(c["type"] in _ENDS and c["status"] == "True" for c in _status(child).get("conditions") or ())
    if plural == "pods":
        return _is_relevant_pod(child)
    return True


def _is_relevant_pod(pod: JsonObject) -> bool:
    phase = _status(pod).get("phase", "Pending")
    if phase == "Pending":
        return diagnose_pod(pod) is not None
    # How a Job's pod ended is judged once the Job says so.
    return not (phase in _PHASES_OF_THE_END and ARTIFACT in (pod["metadata"].get("labels") or {}))


def _status(child: JsonObject) -> dict[str, Any]:
    return child.get("status") or {}

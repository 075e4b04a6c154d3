"""How a Job ended, by what its pods left. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specdec_operator.reconcile.artifact_status import Failure
from specdec_operator.reconcile.diagnosis import program_failure

if TYPE_CHECKING:
    from collections.abc import Iterable

    from specdec_operator.cluster.api import JsonObject

_DEADLINE = "DeadlineExceeded"
"""What the kubelet says of a pod, and the Job controller of a Job, that ran out of its time."""


def failure_of(job: JsonObject, pods: Iterable[JsonObject]) -> Failure:
    """Why a Job failed, by what its pods left."""
    pods = list(pods)
    if late := _out_of_time(job, pods):
        return late
    for pod in pods:
        if _was_disrupted(pod):
            message = "the Job's pod was evicted, preempted or lost with its node; it is tried again"
            return Failure(reason="Interrupted", message=message, terminal=False, counts=False)
        said = program_failure(pod)
        if said:
            return Failure(reason=said.reason, message=said.message, terminal=said.terminal)
        for status in pod.get("status", {}).get("containerStatuses", []):
            ended = status.get("state", {}).get("terminated") or {}
            if ended.get("reason") == "OOMKilled":
                message = "the Job's pod was killed for memory: raise spec.pod.jobResources.memory"
                return Failure(reason="OutOfMemory", message=message, terminal=True)
            if ended.get("exitCode"):
                message = f"the Job's program ended with exit code {ended['exitCode']} and left no message"
                return Failure(reason="JobFailed", message=message, terminal=False)
    message = next(
        (c.get("message", "") for c in job.get("status", {}).get("conditions", []) if c["type"] == "Failed"), ""
    )
    return Failure(reason="JobFailed", message=message or "the Job failed and its pod is gone", terminal=False)


def _out_of_time(job: JsonObject, pods: Iterable[JsonObject]) -> Failure | None:
    """A pod that worked for longer than it may, or a Job whose pod never got to work."""
    if any(pod.get("status", {}).get("reason") == _DEADLINE for pod in pods):
        message = (
            "the Job's pod worked longer than the operator's setting jobHours allows: raise it, or give the Job more "
            "in spec.pod.jobResources, then retry; a download goes on where it stopped"
        )
        return Failure(reason="JobTookTooLong", message=message, terminal=True)
    ends = job.get("status", {}).get("conditions", [])
    if not any(c["type"] == "Failed" and c.get("reason") == _DEADLINE for c in ends):
        return None
    message = "the Job's pod found no node for more than a week; another Job takes its place"
    return Failure(reason="JobTookTooLong", message=message, terminal=False, counts=False)


def termination_message(pods: Iterable[JsonObject]) -> str:
    """What the program of a Job that ended well said; empty if nothing arrived."""
    for pod in pods:
        for status in pod.get("status", {}).get("containerStatuses", []):
            ended = status.get("state", {}).get("terminated") or {}
            if ended.get("exitCode") == 0:
                return str(ended.get("message") or "")
    return ""


def _was_disrupted(pod: JsonObject) -> bool:
    conditions = pod.get("status", {}).get("conditions") or []
    return any(c.get("type") == "DisruptionTarget" and c.get("status") == "True" for c in conditions)

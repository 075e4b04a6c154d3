"""Why a child makes no progress: pods' states and Events as named reasons. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from specdec_operator.pod.termination import Failed, MessageCut, decode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from specdec_operator.cluster.api import JsonObject

MOST_RESTARTS = 4
"""A container that crashed so often will crash again; each time it loads a model onto GPUs for nothing."""

QUIET_SECONDS = 30.0
"""How long a child may be silent before that itself is a finding."""
MOST_EVENTS = 200
"""Events of one object that are read: a tenant can make any number of them, of a kilobyte each."""
_LAST_WORDS = 600
_ON_THE_WAY = frozenset({"ContainerCreating", "PodInitializing"})
_HARMLESS_WARNINGS = frozenset({"DNSConfigForming", "FailedScheduling", "Unhealthy", "BackOff"})
"""Warnings of pods that start all the same, or whose state tells more."""


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """What keeps a child from going on.

    Attributes:
        reason: A fixed CamelCase word.
        message: What was seen, and what to do.
        terminal: Whether waiting can't help.
    """

    reason: str
    message: str
    terminal: bool = False


@dataclass(frozen=True)
class _Sign:
    """A text in an Event or a refusal, and what it means."""

    pattern: str
    reason: str
    remedy: str


_EVENT_SIGNS = (
    _Sign(r"exceeded quota", "QuotaExceeded", "raise the ResourceQuota or free what it counts"),
    _Sign(r"violates PodSecurity", "PodSecurityViolation", "allow the pod in the namespace's Pod Security level"),
    _Sign(r"(maximum|minimum) .* per (Container|Pod)", "LimitRangeViolated", "set spec.pod resources within the range"),
    _Sign(
        r"FailedResourceClaimCreation",
        "ResourceClaimMissing",
        "create the ResourceClaimTemplate that spec.placement.gpu names",
    ),
    _Sign(r"Multi-Attach", "VolumeInUse", "the volume is attached to another node; it follows once released"),
    _Sign(r"(FailedMount|MountVolume|Unable to attach or mount)", "MountFailed", "check the claim and its volume"),
    _Sign(r"serviceaccount .* not found", "ServiceAccountMissing", "create the service account"),
    _Sign(r"FailedToRetrieveImagePullSecret", "SecretMissing", "create the Secrets that pod.imagePullSecrets names"),
    _Sign(
        r"(Failed to pull image|ErrImagePull)",
        "ImagePullFailed",
        "check runtime.image, pod.imagePullSecrets and the registry",
    ),
    _Sign(
        r"FailedCreatePodSandBox",
        "ContainerCreateFailed",
        "see the message: the node can't set the pod up, often for its network plugin or runtime class",
    ),
    _Sign(r"failed calling webhook", "PodForbidden", "an admission webhook does not answer: mend or remove it"),
    _Sign(r"is forbidden", "PodForbidden", "see the message: an admission rule of the cluster refuses the pod"),
)
_WAITING = {
    "ErrImagePull": ("ImagePullFailed", "check runtime.image, pod.imagePullSecrets and the registry"),
    "ImagePullBackOff": ("ImagePullFailed", "check runtime.image, pod.imagePullSecrets and the registry"),
    "ErrImageNeverPull": ("ImagePullFailed", "the image is not on the node and the pull policy is Never"),
    "InvalidImageName": ("ImagePullFailed", "runtime.image is no image reference"),
    "CreateContainerConfigError": (
        "ConfigurationMissing",
        "create the Secret, key or ConfigMap that the message names",
    ),
    "CreateContainerError": ("ContainerCreateFailed", "see the message"),
    "ImageInspectError": ("ImagePullFailed", "the image on the node is broken: remove it there, or name another"),
    "RegistryUnavailable": ("ImagePullFailed", "check the registry"),
    "SignatureValidationFailed": ("ImagePullFailed", "the node's policy refuses the image's signature"),
    "CrashLoopBackOff": ("CrashLoop", "see the container's log: kubectl logs {pod} -c {container} --previous"),
}


def diagnose_pod(pod: JsonObject, events: Iterable[JsonObject] = (), *, age: float = 0.0) -> Diagnosis | None:
    """Why a pod is not ready; None if nothing is wrong that waiting would not mend.

    Args:
        pod: The pod.
        events: What was said of it.
        age: Seconds since it was made: silence is a finding only after a while.
    """
    return (
        _terminated_program(pod)
        or _waiting(pod)
        or _unscheduled(pod)
        or diagnose_events(events, about="pod")
        or (_silence(pod) if age >= QUIET_SECONDS else None)
    )


def diagnose_deployment(deployment: JsonObject) -> Diagnosis | None:
    """Why a Deployment makes no pods of its template; None if it says nothing of the kind."""
    name = deployment["metadata"]["name"]
    if deployment["spec"].get("paused"):
        message = f"Deployment {name} is paused, so its pods stay as they are. Remedy: kubectl rollout resume "
        return Diagnosis(
            reason="DeploymentPaused", message=f"{message}deployment/{name} -n {deployment['metadata']['namespace']}"
        )
    for condition in (deployment.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "ReplicaFailure" and condition.get("status") == "True":
            said = f"{condition.get('reason', '')}: {condition.get('message', '')}"
            return diagnose_text(said, about=f"Deployment {name}") or _not_made(f"Deployment {name}", said)
    return None


def diagnose_job(job: JsonObject, events: Iterable[JsonObject] = ()) -> Diagnosis | None:
    """Why a Job has no pod; None if nothing is wrong that waiting would not mend."""
    name = job["metadata"]["name"]
    if job["spec"].get("suspend"):
        remedy = "Remedy: let whoever suspended it (a queue such as Kueue, or a person) set spec.suspend to false"
        said = f"Job {name} is suspended, so that it makes no pod. {remedy}"
        return Diagnosis(reason="JobSuspended", message=said)
    return diagnose_events(events, about="Job")


def diagnose_events(events: Iterable[JsonObject], *, about: str) -> Diagnosis | None:
    """What an object's warnings say: the newest that is known, else the newest, quoted; None if there is none."""
    unknown = ""
    for event in sorted(events, key=_event_time, reverse=True):
        text = f"{event.get('reason', '')}: {event.get('note') or event.get('message') or ''}"
        if found := diagnose_text(text, about=about):
            return found
        if event.get("type") == "Warning" and event.get("reason") not in _HARMLESS_WARNINGS:
            unknown = unknown or text
    return _not_made(about, unknown) if unknown else None


def _not_made(about: str, said: str) -> Diagnosis:
    return Diagnosis(reason="PodNotStarting", message=f"{about}: {said}. Remedy: see the message, it is the cluster's")


def diagnose_text(text: str, *, about: str) -> Diagnosis | None:
    """What a warning or a refusal says; None if it is none that is known."""
    for sign in _EVENT_SIGNS:
        if re.search(sign.pattern, text):
            return Diagnosis(reason=sign.reason, message=f"{about}: {text}. Remedy: {sign.remedy}")
    return None


def program_failure(pod: JsonObject) -> Failed | None:
    """What a pod's own program said when it failed, or None if it did not run or said nothing.

    The last run counts only while the next one is waited for: one that runs, or has ended well, may have been mended.
    """
    for status in _statuses(pod):
        state = status.get("state") or {}
        ended = (status.get("lastState") or {}).get("terminated") if "waiting" in state else state.get("terminated")
        if ended and ended.get("exitCode") != 0:
            return _outcome(ended)
    return None


def _outcome(ended: JsonObject) -> Failed | None:
    try:
        outcome = decode(ended.get("message") or "")
    except MessageCut:
        return None
    return outcome if isinstance(outcome, Failed) else None


def _terminated_program(pod: JsonObject) -> Diagnosis | None:
    failed = program_failure(pod)
    if failed is None:
        return None
    return Diagnosis(reason=failed.reason, message=failed.message, terminal=failed.terminal)


def _waiting(pod: JsonObject) -> Diagnosis | None:
    for status in _statuses(pod):
        waiting = (status.get("state") or {}).get("waiting") or {}
        if waiting.get("reason", "") in _ON_THE_WAY | {""}:
            continue
        reason, remedy = _WAITING.get(waiting["reason"], ("ContainerCreateFailed", "see the message"))
        name = pod["metadata"]["name"]
        said = waiting.get("message") or waiting["reason"]
        message = f"pod {name}, container {status['name']}: {said}. Remedy: " + remedy.format(
            pod=name, container=status["name"]
        )
        found = "SecretMissing" if reason == "ConfigurationMissing" and "secret" in said.lower() else reason
        if reason == "CrashLoop":
            return _crash_loop(status, message)
        return Diagnosis(reason=found, message=message)
    return None


def _crash_loop(status: JsonObject, message: str) -> Diagnosis:
    ended = (status.get("lastState") or {}).get("terminated") or {}
    words = str(ended.get("message") or "").strip()[-_LAST_WORDS:]
    restarts = status.get("restartCount", 0)
    told = f"{message}. It ended {restarts} times" + (f"; its last words: {words}" if words else "")
    return Diagnosis(reason="CrashLoop", message=told, terminal=restarts >= MOST_RESTARTS)


def _unscheduled(pod: JsonObject) -> Diagnosis | None:
    name = pod["metadata"]["name"]
    for condition in (pod.get("status") or {}).get("conditions") or []:
        if condition.get("type") != "PodScheduled" or condition.get("status") == "True":
            continue
        if condition.get("reason") == "Unschedulable":
            said = f"pod {name}: {condition.get('message', 'no node fits')}"
            if "is being deleted" in said:
                remedy = "it goes once no pod that runs mounts it, and is then made again"
                return Diagnosis(reason="ClaimLeaving", message=f"{said}. Remedy: let the claim go: {remedy}")
            remedy = "free GPUs, add nodes, or change spec.placement or spec.pod"
            return Diagnosis(reason="Unschedulable", message=f"{said}. Remedy: {remedy}")
        if condition.get("reason") == "SchedulingGated":
            gates = ", ".join(gate["name"] for gate in pod.get("spec", {}).get("schedulingGates") or ())
            return Diagnosis(
                reason="SchedulingGated",
                message=f"pod {name} waits behind the scheduling gates {gates}. Remedy: let whoever set them (a queue "
                "or a policy) remove them",
            )
    return None


def _silence(pod: JsonObject) -> Diagnosis | None:
    """What it means that nobody has said anything of a pod."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    if status.get("phase", "Pending") != "Pending" or _statuses(pod):
        return None
    name, node = pod["metadata"]["name"], spec.get("nodeName")
    if node:
        return Diagnosis(
            reason="NodeSilent",
            message=f"pod {name} has the node {node}, which has not begun to start it. Remedy: look whether the node "
            f"is Ready (kubectl get node {node})",
        )
    if any(condition.get("type") == "PodScheduled" for condition in status.get("conditions") or ()):
        return None
    return Diagnosis(
        reason="SchedulerMissing",
        message=f"pod {name}: no scheduler has looked at it; it asks for "
        f"{spec.get('schedulerName', 'default-scheduler')}. Remedy: correct spec.pod.schedulerName, or start that "
        "scheduler",
    )


def _statuses(pod: JsonObject) -> list[JsonObject]:
    status = pod.get("status") or {}
    return [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]


def _event_time(event: JsonObject) -> str:
    series = event.get("series") or {}
    return str(
        series.get("lastObservedTime")
        or event.get("lastTimestamp")
        or event.get("eventTime")
        or event["metadata"].get("creationTimestamp")
        or ""
    )

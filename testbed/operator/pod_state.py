"""What a pod's status says of its one container. Pure."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]
STARTING = frozenset({"ContainerCreating", "PodInitializing"})
FINAL = frozenset({"ErrImageNeverPull", "InvalidImageName"})


def trouble(pod: Json) -> str:
    """Say what keeps a pod from running; empty if nothing does."""
    name, status = pod["metadata"]["name"], pod.get("status", {})
    for condition in status.get("conditions", []):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return f"{name} is not scheduled: {condition.get('message', condition.get('reason', ''))}"
    state = _container(pod).get("state", {})
    waiting, ended = state.get("waiting", {}), state.get("terminated")
    if waiting and waiting.get("reason") not in STARTING:
        return f"{name} waits: {waiting.get('reason', '')}: {waiting.get('message', '')}{_last_end(pod)}"
    return f"{name} ended with code {ended['exitCode']}" if ended else ""


def waits_in_vain(pod: Json) -> bool:
    """Whether waiting longer would start it only if somebody brought its image."""
    return _container(pod).get("state", {}).get("waiting", {}).get("reason") in FINAL


def is_ready(pod: Json) -> bool:
    """Whether the kubelet has found it ready."""
    conditions = pod.get("status", {}).get("conditions", [])
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def running_container(pod: Json) -> str:
    """Return the id of its container that runs, without the runtime's name; empty if none does."""
    container = _container(pod)
    return _bare(container.get("containerID", "")) if "running" in container.get("state", {}) else ""


def container_ids(pod: Json) -> tuple[str, str]:
    """Return the ids of its container before the present one, and of the present one; empty if there is none."""
    container = _container(pod)
    before = container.get("lastState", {}).get("terminated", {}).get("containerID", "")
    return _bare(before), _bare(container.get("containerID", ""))


def _container(pod: Json) -> Json:
    found: list[Json] = pod.get("status", {}).get("containerStatuses", [])
    return found[0] if found else {}


def _last_end(pod: Json) -> str:
    ended = _container(pod).get("lastState", {}).get("terminated")
    return f" (it ended with code {ended['exitCode']})" if ended else ""


def _bare(container: str) -> str:
    return container.rpartition("/")[2]

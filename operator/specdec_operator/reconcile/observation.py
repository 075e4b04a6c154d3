"""The serving side as it is: what Deployment, Service and pods say, and why pods are not ready."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from specdec_operator.cluster.resources import EVENTS, PODS, REPLICA_SETS
from specdec_operator.reconcile.diagnosis import (
    MOST_EVENTS,
    Diagnosis,
    diagnose_deployment,
    diagnose_events,
    diagnose_pod,
)
from specdec_operator.resources.labels import MODEL, REVISION

if TYPE_CHECKING:
    from collections.abc import Callable

    from specdec_operator.api.v1alpha1.metadata import ObjectMeta
    from specdec_operator.cluster.api import JsonObject, KubernetesApi
    from specdec_operator.cluster.resources import ResourceType


@dataclass(frozen=True, kw_only=True)
class Serving:
    """The serving side as it is.

    Attributes:
        revision: The revision that the Deployment's template is of.
        wanted: Pods asked for.
        replicas: Pods that exist.
        ready: Pods that answer their readiness probe, of any revision.
        updated_ready: Whether all wanted pods are of this revision and ready, and no other is left.
        pods: The serving pods.
        trouble: Why pods are not ready.
        deadline_exceeded: Whether the Deployment gave up waiting.
    """

    revision: str
    wanted: int
    replicas: int
    ready: int
    updated_ready: bool
    pods: tuple[JsonObject, ...]
    service: JsonObject
    trouble: Diagnosis | None
    deadline_exceeded: bool

    @property
    def own_pods(self) -> tuple[JsonObject, ...]:
        """The pods of this revision that no other pod takes the place of."""
        return _staying(self.pods, self.revision)


class Observer:
    """Looks at one model's serving side; writes nothing."""

    def __init__(self, api: KubernetesApi, metadata: ObjectMeta, *, now: Callable[[], datetime]) -> None:
        self._api = api
        self._metadata = metadata
        self._now = now

    async def observe(self, live: JsonObject, live_service: JsonObject) -> Serving:
        """The serving side that these belong to.

        Args:
            live: The Deployment.
            live_service: The Service; empty if there is none.
        """
        revision = revision_of(live["spec"]["template"])
        status = live.get("status", {})
        pods = await self._list(PODS, live["spec"]["selector"]["matchLabels"])
        wanted = live["spec"].get("replicas", 1)
        current = status.get("observedGeneration", 0) >= live["metadata"]["generation"]
        counts = {status.get(count, 0) for count in ("replicas", "updatedReplicas", "readyReplicas")}
        updated = current and bool(wanted) and counts == {wanted}
        return Serving(
            revision=revision,
            wanted=wanted,
            replicas=status.get("replicas", 0),
            ready=status.get("readyReplicas", 0),
            updated_ready=updated,
            pods=tuple(pods),
            service=live_service,
            trouble=None if updated or not wanted else await self._trouble(live, _staying(pods, revision)),
            deadline_exceeded=current and _deadline_exceeded(status),
        )

    async def _trouble(self, live: JsonObject, pods: tuple[JsonObject, ...]) -> Diagnosis | None:
        for pod in pods:
            if found := diagnose_pod(pod, age=self._age(pod)):
                return found
        if found := diagnose_deployment(live):
            return found
        if pods:
            waiting = [pod for pod in pods if pod.get("status", {}).get("phase") == "Pending"]
            return diagnose_events(await self._events(waiting), about="pod")
        replica_sets = await self._list(REPLICA_SETS, {MODEL: self._metadata.name})
        uid = live["metadata"]["uid"]
        owned = [r for r in replica_sets if any(o["uid"] == uid for o in r["metadata"].get("ownerReferences", []))]
        return diagnose_events(await self._events(owned), about="Deployment")

    def _age(self, pod: JsonObject) -> float:
        born = pod["metadata"].get("creationTimestamp")
        return (self._now() - datetime.fromisoformat(born)).total_seconds() if born else 0.0

    async def _events(self, objects: list[JsonObject]) -> list[JsonObject]:
        namespace = self._metadata.namespace
        uids = [found["metadata"]["uid"] for found in objects]
        return [
            event
            for uid in uids
            for event in await self._api.list(
                EVENTS, namespace=namespace, field_selector=f"regarding.uid={uid}", at_most=MOST_EVENTS
            )
        ]

    async def _list(self, resource: ResourceType, labels: dict[str, str]) -> list[JsonObject]:
        selector = ",".join(f"{key}={value}" for key, value in labels.items())
        return await self._api.list(resource, namespace=self._metadata.namespace, label_selector=selector)


def revision_of(pod: JsonObject) -> str:
    """The revision that a pod, or a pod template, is of; empty if it says none."""
    return str(pod["metadata"].get("labels", {}).get(REVISION, ""))


def _staying(pods: list[JsonObject] | tuple[JsonObject, ...], revision: str) -> tuple[JsonObject, ...]:
    return tuple(pod for pod in pods if revision_of(pod) == revision and not _is_leaving(pod))


def _is_leaving(pod: JsonObject) -> bool:
    """Whether another pod takes a pod's place: it is being deleted, or was evicted."""
    return "deletionTimestamp" in pod["metadata"] or pod.get("status", {}).get("phase") == "Failed"


def _deadline_exceeded(status: JsonObject) -> bool:
    return any(
        condition.get("type") == "Progressing" and condition.get("reason") == "ProgressDeadlineExceeded"
        for condition in status.get("conditions", [])
    )

"""Jobs that have ended: the last one's pod is kept for its log, older ones go, and all that keep a claim from going."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from specdec_operator.cluster.errors import Conflict, NotFound
from specdec_operator.cluster.resources import JOBS
from specdec_operator.resources.labels import ARTIFACT, SELECTOR

if TYPE_CHECKING:
    from specdec_operator.api.v1alpha1.metadata import ObjectMeta
    from specdec_operator.cluster.api import JsonObject, KubernetesApi

_ENDS = frozenset({"Complete", "Failed"})


def ends_of(job: JsonObject) -> frozenset[str]:
    """How a Job has ended; empty while it runs."""
    conditions = job.get("status", {}).get("conditions") or ()
    return _ENDS & {condition["type"] for condition in conditions if condition["status"] == "True"}


async def delete_finished_jobs(api: KubernetesApi, artifact: ObjectMeta, *, kept: int) -> None:
    """Delete an artifact's finished Jobs with their pods, all but the youngest few."""
    jobs = await api.list(JOBS, namespace=artifact.namespace, label_selector=f"{ARTIFACT}={artifact.name}")
    finished = sorted(filter(ends_of, jobs), key=lambda job: str(job["metadata"]["creationTimestamp"]), reverse=True)
    for job in finished[kept:]:
        await _delete(api, job)


async def release_claim(api: KubernetesApi, claim: str, *, namespace: str) -> None:
    """Delete the finished Jobs whose pods mount a claim: while they exist, Kubernetes deletes no claim."""
    for job in await api.list(JOBS, namespace=namespace, label_selector=SELECTOR):
        volumes = job["spec"]["template"]["spec"].get("volumes") or ()
        mounts = any((volume.get("persistentVolumeClaim") or {}).get("claimName") == claim for volume in volumes)
        if mounts and ends_of(job):
            await _delete(api, job)


async def _delete(api: KubernetesApi, job: JsonObject) -> None:
    metadata = job["metadata"]
    with suppress(NotFound, Conflict):
        await api.delete(JOBS, namespace=metadata["namespace"], name=metadata["name"], uid=metadata["uid"])

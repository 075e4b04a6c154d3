"""The objects that a model became, as a tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from specdec_operator.resources.labels import MODEL, serving_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from testbed.cluster.access import ObjectReader

Json = dict[str, Any]
GPU = "nvidia.com/gpu"
PATHS = {
    "artifacts": "apis/specdec.dev/v1alpha1/namespaces/{namespace}/modelartifacts",
    "jobs": "apis/batch/v1/namespaces/{namespace}/jobs",
    "revisions": "apis/apps/v1/namespaces/{namespace}/controllerrevisions",
    "config_maps": "api/v1/namespaces/{namespace}/configmaps",
    "deployments": "apis/apps/v1/namespaces/{namespace}/deployments",
    "pods": "api/v1/namespaces/{namespace}/pods",
    "services": "api/v1/namespaces/{namespace}/services",
}


@dataclass(frozen=True)
class Objects:
    """What the operator made in a namespace."""

    artifacts: Sequence[Json]
    jobs: Sequence[Json]
    revisions: Sequence[Json]
    config_maps: Sequence[Json]
    deployments: Sequence[Json]
    pods: Sequence[Json]
    services: Sequence[Json]

    @classmethod
    def read(cls, client: ObjectReader, *, namespace: str) -> Objects:
        """List them.

        Raises:
            TestbedError: the API server did not answer.
        """
        return cls(
            **{kind: client.get(f"/{path.format(namespace=namespace)}")["items"] for kind, path in PATHS.items()}
        )

    def serving_pods(self, model: str) -> list[Json]:
        """Return the pods behind a model's Service."""
        return [
            pod
            for pod in self.pods
            if pod["metadata"].get("labels", {}).get(MODEL) == model and "deletionTimestamp" not in pod["metadata"]
        ]

    def service_address(self, model: str) -> str:
        """Return the ClusterIP of a model's Service; empty if it has none."""
        found = [s for s in self.services if s["metadata"]["name"] == serving_name(model)]
        return str(found[0]["spec"].get("clusterIP", "")) if found else ""

    def tree(self, model: Json) -> list[str]:
        """Return the lines of a model's tree."""
        branches = [*self._artifact_lines(model), *self._revision_lines(model), *self._serving_lines(model)]
        last = len(branches) - 1
        marked = [f"{'├─' if number < last else '└─'} {branch}" for number, branch in enumerate(branches)]
        return [f"SpeculativeModel {model['metadata']['name']}", *marked]

    def _artifact_lines(self, model: Json) -> Iterator[str]:
        for used in model.get("status", {}).get("artifacts", []):
            found = [a for a in self.artifacts if a["metadata"]["name"] == used["name"]]
            jobs = [job["metadata"]["name"] for job in self.jobs if found and _controls(found[0], job)]
            shared = len(found[0]["metadata"].get("ownerReferences", [])) if found else 0
            note = f" (shared by {shared} models)" if shared > 1 else ""
            yield f"ModelArtifact {used['name']}: {used['role']}{note} ← Job {', '.join(jobs) or '(gone)'}"

    def _revision_lines(self, model: Json) -> Iterator[str]:
        for revision in self.revisions:
            if _controls(model, revision):
                maps = [m["metadata"]["name"] for m in self.config_maps if _controls(revision, m)]
                current = model["status"].get("currentRevision") == revision["metadata"]["name"]
                note = " (current)" if current else ""
                yield f"ControllerRevision {revision['metadata']['name']}{note} → ConfigMap {', '.join(maps)}"

    def _serving_lines(self, model: Json) -> Iterator[str]:
        for deployment in self.deployments:
            if _controls(model, deployment):
                pods = [_pod(pod) for pod in self.serving_pods(model["metadata"]["name"])]
                yield f"Deployment {deployment['metadata']['name']} → {', '.join(pods) or 'no pod'}"
        for service in self.services:
            if _controls(model, service):
                yield f"Service {service['metadata']['name']} at {service['spec'].get('clusterIP', '')}"


def _controls(owner: Json, child: Json) -> bool:
    references = child["metadata"].get("ownerReferences", [])
    return any(r["uid"] == owner["metadata"]["uid"] and r.get("controller") for r in references)


def _pod(pod: Json) -> str:
    limits = [c.get("resources", {}).get("limits", {}).get(GPU, "0") for c in pod["spec"]["containers"]]
    count = sum(int(limit) for limit in limits)
    return f"Pod {pod['metadata']['name']} ({count} declared GPU{'s' if count != 1 else ''})"

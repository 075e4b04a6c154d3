"""The Job of an artifact and the ConfigMap that it reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from specdec_operator.api import quantities
from specdec_operator.api.configuration import DEFAULT_JOB_HOURS
from specdec_operator.resources.labels import (
    NO_MESH_ANNOTATIONS,
    NO_MESH_LABELS,
    artifact_labels,
    owner_reference,
)
from specdec_operator.resources.programs import (
    config_map,
    plain_environment,
    program_arguments,
    program_data,
    program_volume,
)
from specdec_operator.resources.scheduling import (
    GPU_CLAIM,
    container_security,
    gpu_claims,
    on_node,
    pod_security,
    scheduling,
)
from specdec_operator.resources.work import Work, work_of
from specdec_operator.runtimes.environment import SCRATCH, scratch_environment, without_gpu

if TYPE_CHECKING:
    from specdec_operator.api.v1alpha1.model_artifact import ModelArtifact
    from specdec_operator.resources.template import JsonObject, Templates

_GIB = 1024**3
_HOUR = 3600
_SHORT_HOURS = 4
"""Of Jobs that only read, verify or assemble; most of it is for the pull of a large image."""
_LONG_PROGRAMS = ("fetch", "build")
_WAITING_SECONDS = 7 * 24 * _HOUR
"""How long a Job's pod may wait for a node; then another Job takes its place."""


@dataclass(frozen=True, kw_only=True)
class JobObjects:
    """A Job and what it needs, in the order in which they are created."""

    config_map: JsonObject
    job: JsonObject


def job_name(artifact: str, *, attempt: int, verify: bool = False) -> str:
    """The name of an attempt's Job, counted from 1: creating one attempt twice is one Job."""
    return f"{artifact}-{attempt}{'-verify' if verify else ''}"


def render_job(
    artifact: ModelArtifact,
    *,
    name: str,
    templates: Templates,
    hours: int = DEFAULT_JOB_HOURS,
    verify: bool = False,
    node: str | None = None,
) -> JobObjects:
    """The Job of one attempt.

    Args:
        name: The Job's name; one attempt is one name, so that creating it twice is one Job.
        hours: How long a pod may download or build.
        verify: For an engine: only look whether it is already there, without a GPU.
        node: The node that holds a volume which only one node mounts at a time.
    """
    work = work_of(artifact, verify=verify)
    metadata = artifact.metadata
    labels = artifact_labels(metadata.name)
    owner = owner_reference("ModelArtifact", metadata)
    files = config_map(
        prefix=metadata.name,
        namespace=metadata.namespace,
        labels=labels,
        owner=owner,
        data=program_data({work.program: work.document}),
    )
    job = templates.fill(
        "job.yaml.j2",
        name=name,
        namespace=metadata.namespace,
        labels=labels,
        owner=owner,
        **_limits(work, hours=hours),
        **_pod(artifact, work, labels=labels, node=node),
        **_container(artifact, work),
        volumes=[
            program_volume(files["metadata"]["name"], files["data"]),
            {"name": "scratch", "emptyDir": {}},
            *work.volumes,
        ],
    )
    return JobObjects(config_map=files, job=job)


def _limits(work: Work, *, hours: int) -> dict[str, int]:
    """The pod's time counts from when it has a node; the Job's from when it is made, so that a Job always ends."""
    working = (hours if work.program in _LONG_PROGRAMS else min(hours, _SHORT_HOURS)) * _HOUR
    return {"pod_seconds": working, "job_seconds": working + _WAITING_SECONDS}


def _pod(artifact: ModelArtifact, work: Work, *, labels: dict[str, str], node: str | None) -> JsonObject:
    """Where the pod runs and as whom."""
    pod, gpu = artifact.spec.pod, artifact.spec.gpu
    place = on_node(scheduling(pod), node) if node else scheduling(pod)
    claims = gpu_claims(gpu.resource_claim_template) if work.gpu and gpu else {}
    return {
        "pod_labels": {**labels, **NO_MESH_LABELS},
        "pod_annotations": NO_MESH_ANNOTATIONS,
        "scheduling": {**place, **claims},
        "pod_security": pod_security(pod),
    }


def _container(artifact: ModelArtifact, work: Work) -> JsonObject:
    environment = {**scratch_environment(), **({} if work.gpu else without_gpu())}
    return {
        "container_security": container_security(),
        "image": artifact.spec.image,
        "pull_policy": artifact.spec.image_pull_policy,
        "arguments": program_arguments(work.program),
        "environment": [*plain_environment(environment), *work.environment, _pod_uid()],
        "resources": _resources(artifact, work),
        "mounts": [*_program_mounts(), *work.mounts],
    }


def _program_mounts() -> list[JsonObject]:
    return [
        {"name": "program", "mountPath": "/specdec/program", "readOnly": True},
        {"name": "scratch", "mountPath": SCRATCH},
    ]


def _pod_uid() -> JsonObject:
    return {"name": "POD_UID", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.uid"}}}


def _resources(artifact: ModelArtifact, work: Work) -> JsonObject:
    asked = artifact.spec.pod.job_resources
    build = artifact.spec.build
    needed = (build.memory_bytes or _GIB + 2 * build.weight_bytes) if build and work.gpu else _GIB
    derived = quantities.memory(needed)
    memory = quantities.canonical(asked.memory or derived)
    requests = {"cpu": quantities.canonical(asked.cpu or ("1" if work.gpu else "100m")), "memory": memory}
    resources: JsonObject = {"requests": requests, "limits": {"memory": memory}}
    gpu = artifact.spec.gpu
    if work.gpu and gpu and gpu.resource_name:
        for part in resources.values():
            part[gpu.resource_name] = str(gpu.count)
    elif work.gpu and gpu and gpu.resource_claim_template:
        resources["claims"] = [{"name": GPU_CLAIM}]
    return resources

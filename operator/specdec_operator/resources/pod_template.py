"""The template of a model's serving pods: a check and a dry assembly, then the server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specdec_operator.api import quantities
from specdec_operator.planning.pods import placed_pod
from specdec_operator.pod.sources import PROGRAM_DIRECTORY
from specdec_operator.resources.labels import REVISION, claim_label, model_labels
from specdec_operator.resources.programs import (
    config_map_name,
    plain_environment,
    program_arguments,
    program_volume,
)
from specdec_operator.resources.scheduling import (
    GPU_CLAIM,
    container_security,
    gpu_claims,
    pod_security,
    scheduling,
    together,
)
from specdec_operator.resources.volumes import mounted
from specdec_operator.runtimes.environment import SCRATCH, scratch_environment, server_environment, without_gpu
from specdec_operator.runtimes.serving import EXIT_TIMEOUT_SECONDS, REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from specdec_operator.api.v1alpha1.placement import Gpu
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModel, SpeculativeModelSpec
    from specdec_operator.planning.plan import ServingPlan
    from specdec_operator.resources.template import JsonObject, Templates

_STARTUP_PERIOD_SECONDS = 5
_RANK_EXIT_SECONDS = 5
_SMALL_MEMORY = "256Mi"


def pod_template(
    model: SpeculativeModel, plan: ServingPlan, *, revision: str, data: Mapping[str, str], templates: Templates
) -> JsonObject:
    """The template of the pods that serve a plan.

    Args:
        revision: The name that their label carries.
        data: The ConfigMap that they read.
    """
    spec, image = model.spec, plan.resolution.image
    beside = [claim_label(claim) for claim in plan.single_node_claims]
    models = mounted([(mount.source, mount.directory) for mount in plan.mounts], prefix="models")
    return templates.fill(
        "pod.yaml.j2",
        labels=_labels(model, revision=revision, beside=beside),
        annotations=spec.pod.annotations,
        **_pod_settings(spec, plan, beside=beside),
        container_security=container_security(),
        image=image.reference,
        pull_policy=image.pull_policy,
        arguments={
            "check": program_arguments("check"),
            "assemble": program_arguments("assemble"),
            "server": program_arguments("launch"),
        },
        environment=_environment(spec),
        resources=_resources(plan, spec.placement.gpu),
        **_probes(spec, plan),
        open_ai_port=plan.files.open_ai_port,
        mounts=_mounts(models.mounts),
        volumes=[program_volume(config_map_name(revision, data), data), *_own_volumes(plan), *models.volumes],
    )


def _labels(model: SpeculativeModel, *, revision: str, beside: Sequence[str]) -> dict[str, str]:
    return {
        **model.spec.pod.labels,
        **model_labels(model.metadata.name, "server"),
        REVISION: revision,
        **dict.fromkeys(beside, "true"),
    }


def _pod_settings(spec: SpeculativeModelSpec, plan: ServingPlan, *, beside: Sequence[str]) -> JsonObject:
    """Where the pods run, as whom, and how long they may take to leave."""
    pod = placed_pod(spec, plan.resolution.gpu_product)
    gpus = gpu_claims(spec.placement.gpu.resource_claim_template)
    return {
        "scheduling": {**together(scheduling(pod), beside), **gpus},
        "pod_security": pod_security(pod),
        # Ranks leave one after the other.
        "grace_seconds": 2 * EXIT_TIMEOUT_SECONDS + _RANK_EXIT_SECONDS * plan.resolution.placement.world_size,
    }


def _environment(spec: SpeculativeModelSpec) -> JsonObject:
    server = {**{variable.name: variable.value for variable in spec.pod.environment}, **server_environment()}
    return {
        "check": plain_environment(scratch_environment()),
        "assemble": plain_environment({**scratch_environment(), **without_gpu()}),
        "server": plain_environment(server),
    }


def _resources(plan: ServingPlan, gpu: Gpu) -> JsonObject:
    gpus = {gpu.extended_resource: str(plan.resolution.placement.gpus)} if gpu.extended_resource else {}
    claims = {"claims": [{"name": GPU_CLAIM}]} if gpu.resource_claim_template is not None else {}
    # A pod asks for the most that one of its containers asks for: these must not make a small server's pod larger.
    cpu = quantities.lesser("100m", plan.size.cpu)
    small = {"requests": {"cpu": cpu, "memory": _SMALL_MEMORY}, "limits": {"memory": _SMALL_MEMORY}}
    memory = quantities.memory(plan.size.memory_bytes)
    return {
        "check": {**{part: {**values, **gpus} for part, values in small.items()}, **claims},
        "assemble": small,
        "server": {
            "requests": {"cpu": plan.size.cpu, "memory": memory, **gpus},
            "limits": {"memory": memory, **gpus},
            **claims,
        },
    }


def _probes(spec: SpeculativeModelSpec, plan: ServingPlan) -> JsonObject:
    return {
        "probes": {"startup": program_arguments("canary"), "liveness": program_arguments("liveness")},
        "startup_failures": spec.update.startup_minutes * 60 // _STARTUP_PERIOD_SECONDS,
        "ready_path": f"/v2/models/{plan.files.endpoint_model}/ready",
    }


def _mounts(models: Sequence[JsonObject]) -> JsonObject:
    common = [{"name": "program", "mountPath": PROGRAM_DIRECTORY, "readOnly": True}, _mount("scratch", SCRATCH)]
    shared_memory = _mount("shared-memory", "/dev/shm")  # noqa: S108 - the container's own
    repository = _mount("repository", REPOSITORY)
    return {
        "check": [*common, *models, shared_memory],
        "assemble": [*common, repository],
        "server": [*common, {**repository, "readOnly": True}, *models, shared_memory],
    }


def _mount(name: str, path: str) -> JsonObject:
    return {"name": name, "mountPath": path}


def _own_volumes(plan: ServingPlan) -> list[JsonObject]:
    """The volumes that live as long as a pod."""
    shared_memory = {"medium": "Memory", "sizeLimit": quantities.memory(plan.size.shared_memory_bytes)}
    return [
        {"name": "scratch", "emptyDir": {}},
        {"name": "repository", "emptyDir": {}},
        {"name": "shared-memory", "emptyDir": shared_memory},
    ]

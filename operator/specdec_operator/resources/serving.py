"""The serving side of a model: pod template, ConfigMap and the ControllerRevision that keeps both."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from specdec_operator.planning import quantities
from specdec_operator.planning.acquire import placed_pod
from specdec_operator.planning.keys import short
from specdec_operator.planning.plan import revision_key
from specdec_operator.pod.inputs import CanaryInput, LaunchInput, LivenessInput
from specdec_operator.pod.sources import PROGRAM_DIRECTORY
from specdec_operator.resources.labels import REVISION, claim_label, model_labels, owner_reference
from specdec_operator.resources.programs import (
    config_map,
    config_map_name,
    plain_environment,
    program_arguments,
    program_data,
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
from specdec_operator.runtimes.serving import EXIT_TIMEOUT_SECONDS, HTTP_PORT, REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModel
    from specdec_operator.planning.plan import ServingPlan
    from specdec_operator.resources.template import JsonObject, Templates

_STARTUP_PERIOD_SECONDS = 5
_CANARY_TIMEOUT_SECONDS = 45
_STUCK_SECONDS = 300
_RANK_EXIT_SECONDS = 5


@dataclass(frozen=True, kw_only=True)
class Revision:
    """One rendered serving side.

    Attributes:
        name: Named by the plan's hash; equal plans are one revision.
        template: The pod template.
        data: The ConfigMap that the pods read: programs and their inputs.
    """

    name: str
    template: JsonObject
    data: Mapping[str, str]

    @property
    def config_map(self) -> str:
        """The name of the ConfigMap."""
        return config_map_name(self.name, self.data)


def render_revision(
    model: SpeculativeModel, plan: ServingPlan, *, assembly_digest: str, templates: Templates, restart: str = ""
) -> Revision:
    """Render the serving side of a plan.

    Args:
        assembly_digest: What the image made of the model repository, from the dry assembly.
        restart: The value of the annotation `specdec.dev/restart`.
    """
    key = revision_key(model.spec, plan, assembly_digest=assembly_digest, restart=restart)
    name = f"{model.metadata.name}-{short(key)}"
    data = program_data(_inputs(plan, revision=name, assembly_digest=assembly_digest))
    template = _pod_template(model, plan, revision=name, data=data, templates=templates)
    return Revision(name=name, template=template, data=data)


def controller_revision(model: SpeculativeModel, revision: Revision, *, number: int) -> JsonObject:
    """The object that keeps a revision, so that a newer renderer rolls no pod and a return needs no rendering."""
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": revision.name,
            "namespace": model.metadata.namespace,
            "labels": model_labels(model.metadata.name, "revision"),
            "ownerReferences": [owner_reference("SpeculativeModel", model.metadata)],
        },
        "revision": number,
        "data": {"template": revision.template, "files": dict(revision.data)},
    }


def revision_files(model: SpeculativeModel, revision: Revision, *, uid: str) -> JsonObject:
    """The ConfigMap that a revision's pods read.

    Args:
        uid: Of the ControllerRevision, which owns it.
    """
    kept = model.metadata.model_copy(update={"name": revision.name, "uid": uid})
    return config_map(
        prefix=revision.name,
        namespace=model.metadata.namespace,
        labels=model_labels(model.metadata.name, "revision"),
        owner=owner_reference("ControllerRevision", kept, api_version="apps/v1"),
        data=revision.data,
    )


def stored_revision(document: JsonObject) -> Revision:
    """Read a ControllerRevision back."""
    data = document["data"]
    return Revision(name=document["metadata"]["name"], template=data["template"], data=data["files"])


def _inputs(plan: ServingPlan, *, revision: str, assembly_digest: str) -> dict[str, str]:
    files = plan.files
    request = files.generate_request
    return {
        "check": plan.check.to_json(),
        "assemble": replace(plan.assembled, revision=revision, expected_digest=assembly_digest).to_json(),
        "launch": LaunchInput(argv=files.argv, environment=dict(files.environment)).to_json(),
        "canary": CanaryInput(
            port=HTTP_PORT,
            model=files.endpoint_model,
            request=request,
            output=files.output,
            timeout_seconds=_CANARY_TIMEOUT_SECONDS,
            state_file=f"{SCRATCH}/canary",
        ).to_json(),
        "liveness": LivenessInput(
            port=HTTP_PORT,
            metrics_port=files.metrics_port,
            model=files.endpoint_model,
            request=request,
            output=files.output,
            timeout_seconds=30,
            stuck_seconds=_STUCK_SECONDS,
            state_file=f"{SCRATCH}/liveness",
            takes_at_once=files.takes_at_once,
        ).to_json(),
    }


def _pod_template(
    model: SpeculativeModel, plan: ServingPlan, *, revision: str, data: Mapping[str, str], templates: Templates
) -> JsonObject:
    spec = model.spec
    pod = placed_pod(spec, plan.resolution)
    beside = [claim_label(claim) for claim in plan.single_node_claims]
    gpu = spec.placement.gpu
    gpus = {gpu.extended_resource: str(plan.resolution.placement.gpus)} if gpu.extended_resource else {}
    common = [{"name": "program", "mountPath": PROGRAM_DIRECTORY, "readOnly": True}, _mount("scratch", SCRATCH)]
    repository = _mount("repository", REPOSITORY)
    models = mounted([(mount.source, mount.directory) for mount in plan.mounts], prefix="models")
    environment = {**{e.name: e.value for e in spec.pod.environment}, **server_environment()}
    return templates.fill(
        "pod.yaml.j2",
        labels={
            **spec.pod.labels,
            **model_labels(model.metadata.name, "server"),
            REVISION: revision,
            **dict.fromkeys(beside, "true"),
        },
        annotations=spec.pod.annotations,
        # Ranks leave one after the other.
        grace_seconds=2 * EXIT_TIMEOUT_SECONDS + _RANK_EXIT_SECONDS * plan.resolution.placement.world_size,
        scheduling={**together(scheduling(pod), beside), **gpu_claims(gpu.resource_claim_template)},
        pod_security=pod_security(pod),
        container_security=container_security(),
        image=plan.resolution.image.reference,
        pull_policy=plan.resolution.image.pull_policy,
        arguments={
            "check": program_arguments("check"),
            "assemble": program_arguments("assemble"),
            "server": program_arguments("launch"),
        },
        environment={
            "check": plain_environment(scratch_environment()),
            "assemble": plain_environment({**scratch_environment(), **without_gpu()}),
            "server": plain_environment(environment),
        },
        resources=_resources(plan, gpus, claimed=gpu.resource_claim_template is not None),
        probes={"startup": program_arguments("canary"), "liveness": program_arguments("liveness")},
        startup_failures=spec.update.startup_minutes * 60 // _STARTUP_PERIOD_SECONDS,
        ready_path=f"/v2/models/{plan.files.endpoint_model}/ready",
        open_ai_port=plan.files.open_ai_port,
        mounts={
            "check": [*common, *models.mounts, _mount("shared-memory", "/dev/shm")],  # noqa: S108 - the container's own
            "assemble": [*common, repository],
            "server": [*common, {**repository, "readOnly": True}, *models.mounts, _mount("shared-memory", "/dev/shm")],  # noqa: S108
        },
        volumes=[
            program_volume(config_map_name(revision, data), data),
            {"name": "scratch", "emptyDir": {}},
            {"name": "repository", "emptyDir": {}},
            {
                "name": "shared-memory",
                "emptyDir": {"medium": "Memory", "sizeLimit": quantities.memory(plan.size.shared_memory_bytes)},
            },
            *models.volumes,
        ],
    )


def _mount(name: str, path: str) -> JsonObject:
    return {"name": name, "mountPath": path}


def _resources(plan: ServingPlan, gpus: dict[str, str], *, claimed: bool) -> JsonObject:
    memory = quantities.memory(plan.size.memory_bytes)
    # A pod asks for the most that one of its containers asks for: these must not make a small server's pod larger.
    cpu = quantities.lesser("100m", plan.size.cpu)
    small = {"requests": {"cpu": cpu, "memory": "256Mi"}, "limits": {"memory": "256Mi"}}
    claims = {"claims": [{"name": GPU_CLAIM}]} if claimed else {}
    return {
        "check": {**{part: {**values, **gpus} for part, values in small.items()}, **claims},
        "assemble": small,
        "server": {
            "requests": {"cpu": plan.size.cpu, "memory": memory, **gpus},
            "limits": {"memory": memory, **gpus},
            **claims,
        },
    }

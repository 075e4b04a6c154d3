"""The second pure step: with the models' facts known, everything else that a model needs.

A `ServingPlan` says what the pods run. Its key names the revision: equal plans are one revision, whatever renders them.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Final

from specdec_operator.api.quantities import byte_count, canonical
from specdec_operator.api.v1alpha1.artifact_inputs import AssembleInput, MountedModel
from specdec_operator.api.v1alpha1.model_artifact import ModelArtifactSpec
from specdec_operator.planning.artifact_request import ArtifactRequest
from specdec_operator.planning.engine_expectations import engine_expectation
from specdec_operator.planning.keys import content_key, short
from specdec_operator.planning.pods import placed_pod
from specdec_operator.planning.serving_request import host_cache_bytes, serving_request
from specdec_operator.pod.inputs import AssembleInput as AssembleProgramInput
from specdec_operator.pod.inputs import CheckInput
from specdec_operator.runtimes import llm_api, openai, tensorrt_engine, vllm
from specdec_operator.runtimes.serving import (
    ENGINE_DIRECTORIES,
    MODEL_DIRECTORIES,
    REPOSITORY,
    ServingFiles,
    ServingRequest,
)
from specdec_operator.runtimes.vllm_speculation import draft_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from specdec_operator.api.v1alpha1.model_facts import ModelFacts
    from specdec_operator.api.v1alpha1.runtime import Backend
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModelSpec
    from specdec_operator.planning.resolution import Resolution
    from specdec_operator.pod.inputs import ModelTemplate

_GIB = 1024**3
_RENDERERS: Final[Mapping[Backend, Callable[[ServingRequest], ServingFiles]]] = {
    "LLMAPI": llm_api.render,
    "TensorRTEngine": tensorrt_engine.render,
    "VLLM": vllm.render,
}


@dataclass(frozen=True, kw_only=True)
class Mount:
    """A directory of a claim that the serving pods read."""

    source: MountedModel
    directory: str


@dataclass(frozen=True, kw_only=True)
class PodSize:
    """What the server container asks for.

    Attributes:
        cpu: Cores, as a Kubernetes quantity.
        memory_bytes: Memory, shared memory included.
        shared_memory_bytes: Size of /dev/shm.
    """

    cpu: str
    memory_bytes: int
    shared_memory_bytes: int


@dataclass(frozen=True, kw_only=True)
class ServingPlan:
    """What the serving pods of a model run, down to the last file.

    Attributes:
        assembly: The artifact that proves the model repository in the serving image, before any swap.
        assembled: What that artifact's program reads; the serving pods run the same with a revision.
        check: What the first init container verifies.
        single_node_claims: Claims whose volume one node mounts at a time: pods that mount one stay together.
    """

    resolution: Resolution
    files: ServingFiles
    mounts: tuple[Mount, ...]
    check: CheckInput
    assembled: AssembleProgramInput
    assembly: ArtifactRequest
    size: PodSize
    single_node_claims: tuple[str, ...] = ()

    @property
    def repository(self) -> str:
        """The model repository's description (JSON), without a revision."""
        return self.assembly.spec.assemble.repository if self.assembly.spec.assemble else ""


def plan_serving(
    spec: SpeculativeModelSpec,
    resolution: Resolution,
    *,
    facts: Mapping[str, ModelFacts],
    models: Sequence[ArtifactRequest],
    engines: Sequence[ArtifactRequest] = (),
    engine_digests: Mapping[str, str] | None = None,
    single_node: Collection[str] = (),
) -> ServingPlan:
    """Plan the serving pods.

    Args:
        facts: Facts per role.
        models: The model artifacts, from `acquire`.
        engines: The engine artifacts, from `plan_engines`.
        engine_digests: Manifest digest per engine role, where the engines are built.
        single_node: Claims whose volume one node mounts at a time.
    """
    request = serving_request(spec, resolution, facts)
    backend = resolution.backend
    files = openai.with_front_end(_RENDERERS[backend](request), request, backend=backend)
    assembled = AssembleProgramInput(
        output=REPOSITORY, models=_models(files), revision_model=files.endpoint_model, revision="", expected_digest=""
    )
    return ServingPlan(
        resolution=resolution,
        files=files,
        mounts=_mounts(models, engines, directories=_served_directories(spec, resolution, request)),
        check=_check(spec, resolution, request, engines=engines, digests=engine_digests or {}),
        assembled=assembled,
        assembly=_assembly(resolution, assembled),
        size=_size(spec, resolution, facts),
        single_node_claims=tuple(sorted(claims_of((*models, *engines)) & set(single_node))),
    )


def claims_of(requests: Sequence[ArtifactRequest]) -> frozenset[str]:
    """The claims that the serving pods mount."""
    return frozenset(r.yields.claim_name for r in requests if r.yields and r.yields.claim_name)


def revision_key(spec: SpeculativeModelSpec, plan: ServingPlan, *, assembly_digest: str, restart: str = "") -> str:
    """The hash that names a revision: all that decides what its pods run; not replicas, suspend, Service or metadata.

    Args:
        assembly_digest: What the image made of the model repository.
        restart: The value of the annotation `specdec.dev/restart`.
    """
    return content_key(
        {
            "image": plan.resolution.image.model_dump(),
            "release": plan.resolution.release.name,
            "argv": plan.files.argv,
            "environment": dict(plan.files.environment),
            "repository": plan.repository,
            "assembly": assembly_digest,
            # Another word for where a floor was read rolls no pod.
            "check": replace(plan.check, driver=replace(plan.check.driver, source="")).to_json(),
            "mounts": [{"directory": m.directory, **m.source.model_dump()} for m in plan.mounts],
            "size": asdict(plan.size),
            "gpus": {
                spec.placement.gpu.extended_resource or "claim": plan.resolution.placement.gpus,
                "template": spec.placement.gpu.resource_claim_template,
            },
            "pod": placed_pod(spec, plan.resolution.gpu_product).model_dump(
                exclude={"job_resources", "server_resources"}
            ),
            "startupMinutes": spec.update.startup_minutes,
            "restart": restart,
            **({"singleNode": plan.single_node_claims} if plan.single_node_claims else {}),
        }
    )


def _served_directories(spec: SpeculativeModelSpec, resolution: Resolution, request: ServingRequest) -> dict[str, str]:
    """Where the server reads the files of each role: on engines a head is built into its target."""
    directories = {"target": MODEL_DIRECTORIES["target"]}
    built_in = resolution.backend == "TensorRTEngine" and spec.speculation.method != "DraftTarget"
    if spec.draft and not built_in:
        directories["draft"] = draft_directory(request) if resolution.backend == "VLLM" else MODEL_DIRECTORIES["draft"]
    return directories


def _mounts(
    models: Sequence[ArtifactRequest], engines: Sequence[ArtifactRequest], *, directories: Mapping[str, str]
) -> tuple[Mount, ...]:
    mounts = [
        Mount(source=m.yields, directory=directories[m.role]) for m in models if m.yields and m.role in directories
    ]
    mounts += [
        Mount(source=e.yields, directory=ENGINE_DIRECTORIES[e.role.removesuffix("-engine")])
        for e in engines
        if e.yields
    ]
    return tuple(mounts)


def _check(
    spec: SpeculativeModelSpec,
    resolution: Resolution,
    request: ServingRequest,
    *,
    engines: Sequence[ArtifactRequest],
    digests: Mapping[str, str],
) -> CheckInput:
    roles = {engine.role: engine.role.removesuffix("-engine") for engine in engines}
    expectations = tuple(
        engine_expectation(
            role, spec, resolution, directory=ENGINE_DIRECTORIES[role], digest=digests.get(engine_role, "")
        )
        for engine_role, role in roles.items()
    )
    return CheckInput(
        gpus=resolution.placement.gpus,
        gpu_product=resolution.gpu_product or "",
        driver=resolution.driver_floor,
        tensorrt_llm_version=resolution.release.required_tensorrt_llm if resolution.backend != "VLLM" else "",
        engines=expectations,
        vllm_version=resolution.release.version_for("VLLM") if resolution.backend == "VLLM" else "",
        model_directories=tuple(_served_directories(spec, resolution, request).values()),
    )


def _models(files: ServingFiles) -> tuple[ModelTemplate, ...]:
    """The model repository, whose endpoint model must declare what probes, proofs and clients are to send."""
    sent = {tensor.name: tensor for tensors in (files.tensors, *files.counted) for tensor in tensors}
    expected = {name: tensor.triton_type for name, tensor in sorted(sent.items())}
    return tuple(
        replace(template, expected_inputs=expected)
        # Without a template of the image the backend itself declares the inputs.
        if template.name == files.endpoint_model and template.candidates
        else template
        for template in files.templates
    )


def _assembly(resolution: Resolution, assembled: AssembleProgramInput) -> ArtifactRequest:
    repository = assembled.to_json()
    key = content_key({"image": resolution.image.reference, "repository": repository})
    return ArtifactRequest(
        role="assembly",
        name=f"assembly-{short(key)}",
        spec=ModelArtifactSpec(
            type="Assembly",
            key=key,
            assemble=AssembleInput(repository=repository),
            **resolution.jobs,
        ),
        yields=None,
    )


def _size(spec: SpeculativeModelSpec, resolution: Resolution, facts: Mapping[str, ModelFacts]) -> PodSize:
    processes = resolution.placement.processes
    shared = max(2, processes) * _GIB
    weights = sum(fact.weight_bytes for fact in facts.values()) + sum(host_cache_bytes(spec).values())
    asked = spec.pod.server_resources
    return PodSize(
        cpu=canonical(asked.cpu or str(processes + 2)),
        memory_bytes=byte_count(asked.memory) if asked.memory else 4 * _GIB + weights + shared,
        shared_memory_bytes=shared,
    )

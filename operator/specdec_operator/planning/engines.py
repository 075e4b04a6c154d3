"""Engines: what builds or inspects each of them, and the key that decides its content."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from specdec_operator.api.v1alpha1.artifact_inputs import BuildInput, JobGpu, MountedModel, PrebuiltInput
from specdec_operator.api.v1alpha1.model_artifact import ModelArtifactSpec
from specdec_operator.planning.acquire import ArtifactRequest, job_pod
from specdec_operator.planning.build_resources import build_needs
from specdec_operator.planning.calibration import texts_of
from specdec_operator.planning.engine_expectations import engine_expectation
from specdec_operator.planning.engine_limits import engine_roles, limit_refusals, ranks_of, split_refusals
from specdec_operator.planning.engine_recipes import BUILT_IN_HEADS, engine_recipe
from specdec_operator.planning.engine_rules import architecture_refusals, is_prebuilt
from specdec_operator.planning.keys import content_key, short
from specdec_operator.planning.memory import gpu_memory, memory_refusals
from specdec_operator.planning.refusal import Refusal, Refused
from specdec_operator.pod.inputs import InspectEngineInput
from specdec_operator.runtimes.build_steps import PROOF, build_steps

if TYPE_CHECKING:
    from collections.abc import Mapping

    from specdec_operator.api.v1alpha1.model_facts import DataSetFacts, ModelFacts
    from specdec_operator.api.v1alpha1.source import ClaimSource
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModelSpec
    from specdec_operator.planning.calibration import Texts
    from specdec_operator.planning.resolution import Resolution
    from specdec_operator.runtimes.release import EngineSupport

BUILD_PROGRAM_VERSION = 1
"""Part of every engine's key: raised when the build program makes different engines from the same input."""
PREBUILT_DIRECTORY = "/engine"
"""Where a Job that inspects an engine mounts it."""
_MIG_PROFILE = re.compile(r"/mig-(.+)$")


def plan_engines(
    spec: SpeculativeModelSpec,
    resolution: Resolution,
    *,
    facts: Mapping[str, ModelFacts],
    models: Mapping[str, MountedModel],
    data_sets: Mapping[str, DataSetFacts] | None = None,
) -> tuple[ArtifactRequest, ...]:
    """The engines that a spec needs, target first; empty on other backends.

    Args:
        facts: Facts per role.
        models: Where each role's model lies, and the texts of `acquire_texts`.
        data_sets: Facts of those texts, by their roles.

    Raises:
        Refused: A model can't be split as asked, an architecture has no converter, a limit exceeds the context, or a
            GPU's memory is too small.
    """
    support = resolution.release.tensorrt_engine if resolution.backend == "TensorRTEngine" else None
    refusals = split_refusals(spec, facts)
    if support is not None:
        refusals += architecture_refusals(spec, resolution, facts) + limit_refusals(spec, resolution, facts)
    # The estimate means nothing for a model that can't be split or built as asked.
    refusals = refusals or memory_refusals(spec, resolution, facts)
    if refusals:
        raise Refused(tuple(refusals))
    if support is None:
        return ()
    return tuple(
        _inspected(role, spec, resolution)
        if is_prebuilt(role, spec)
        else _built(
            role,
            spec,
            resolution,
            support=support,
            facts=facts,
            models=models,
            texts=texts_of(role, spec, models, data_sets or {}),
        )
        for role in engine_roles(spec)
    )


def _built(
    role: str,
    spec: SpeculativeModelSpec,
    resolution: Resolution,
    *,
    support: EngineSupport,
    facts: Mapping[str, ModelFacts],
    models: Mapping[str, MountedModel],
    texts: Texts | None,
) -> ArtifactRequest:
    recipe = engine_recipe(role, spec, resolution, facts=facts, calibrated=texts is not None)
    steps = build_steps(recipe, support)
    head = "draft" if role == "target" and spec.speculation.method in BUILT_IN_HEADS else None
    inputs = {"model": facts[role], **({"head": facts[head]} if head else {})}
    product, claim = resolution.gpu_product or "", resolution.store_claim or ""
    key = content_key(
        {
            "inputs": {name: fact.commit or fact.content_digest for name, fact in inputs.items()},
            "calibration": texts.content if texts else None,
            "steps": [step.model_dump() for step in steps if step.name != PROOF],
            # It decides the TensorRT and the quantizer that come with it.
            "tensorrtLLM": resolution.release.tensorrt_llm,
            "image": _own_image(resolution),
            "gpuProduct": product,
            "migProfile": _mig_profile(spec),
            "buildProgram": BUILD_PROGRAM_VERSION,
        }
    )
    weights = sum(fact.weight_bytes for fact in inputs.values())
    needs = build_needs(recipe, weight_bytes=weights, gpu_memory=gpu_memory(spec, resolution))
    _require_claimed(role, spec, wanted=needs.gpus, given=resolution.placement.gpus)
    directory = f"engines/{short(key)}"
    build = BuildInput(
        model=models[role],
        head=models[head] if head else None,
        calibration=texts.place if texts else None,
        steps=list(steps),
        directory=directory,
        ranks=ranks_of(role, spec),
        tensorrt_llm_version=resolution.release.required_tensorrt_llm or None,
        weight_bytes=weights,
        memory_bytes=needs.memory_bytes,
        scratch_bytes=needs.scratch_bytes,
    )
    return ArtifactRequest(
        role=f"{role}-engine",
        name=f"engine-{short(content_key({'key': key, 'claim': claim}))}",
        spec=ModelArtifactSpec(
            type="Engine",
            key=key,
            image=resolution.image.reference,
            image_pull_policy=resolution.image.pull_policy,
            claim_name=claim,
            build=build,
            gpu=_gpu(spec, product, count=needs.gpus),
            pod=job_pod(spec, resolution),
        ),
        yields=MountedModel(claim_name=claim, sub_path=directory),
    )


def _require_claimed(role: str, spec: SpeculativeModelSpec, *, wanted: int, given: int) -> None:
    """Refuse a build on more GPUs than a claim template gives, which is made for the serving pods.

    Raises:
        Refused: It needs more.
    """
    if spec.placement.gpu.resource_claim_template is None or wanted <= given:
        return
    message = (
        f"the quantizer needs {wanted} GPUs for the {role}, and the template gives the {given} of a serving pod: name "
        f"GPUs with more memory, use resourceName in its place, or remove {role}.quantization"
    )
    path = "spec.placement.gpu.resourceClaimTemplate"
    raise Refused((Refusal(reason="GpuMemoryTooSmall", path=path, message=message),))


def _own_image(resolution: Resolution) -> str:
    """The image that builds, where no shipped row names it; empty for those, however a spec comes to one."""
    return "" if resolution.stock_image else resolution.image.reference


def _inspected(role: str, spec: SpeculativeModelSpec, resolution: Resolution) -> ArtifactRequest:
    source = _prebuilt(role, spec)
    expected = InspectEngineInput(
        engine=engine_expectation(role, spec, resolution, directory=PREBUILT_DIRECTORY),
        tensorrt_llm_version=resolution.release.required_tensorrt_llm,
    )
    sub_path = source.sub_path or ""
    key = content_key(
        {"claim": source.claim_name, "directory": sub_path, "prebuilt": True, "expected": expected.to_json()}
    )
    return ArtifactRequest(
        role=f"{role}-engine",
        name=f"engine-{short(key)}",
        spec=ModelArtifactSpec(
            type="Engine",
            key=key,
            image=resolution.image.reference,
            image_pull_policy=resolution.image.pull_policy,
            claim_name=source.claim_name,
            prebuilt=PrebuiltInput(sub_path=sub_path, expectation=expected.to_json()),
            pod=job_pod(spec, resolution),
        ),
        yields=MountedModel(claim_name=source.claim_name, sub_path=sub_path),
    )


def _prebuilt(role: str, spec: SpeculativeModelSpec) -> ClaimSource:
    prebuilt = spec.engine.prebuilt if spec.engine else None
    source = (prebuilt.target if role == "target" else prebuilt.draft) if prebuilt else None
    if source is None:
        raise KeyError(role)
    return source


def _mig_profile(spec: SpeculativeModelSpec) -> str:
    # Where slices are mixed on a GPU, the resource names the slice and the product label does not.
    found = _MIG_PROFILE.search(spec.placement.gpu.extended_resource or "")
    return found[1] if found else ""


def _gpu(spec: SpeculativeModelSpec, product: str, *, count: int) -> JobGpu:
    gpu = spec.placement.gpu
    return JobGpu(
        resource_name=gpu.extended_resource,
        resource_claim_template=gpu.resource_claim_template,
        count=count,
        product=product,
    )

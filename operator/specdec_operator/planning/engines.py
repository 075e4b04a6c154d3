"""Engines: what builds or inspects each of them, and the key that decides its content."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specdec_operator.api.v1alpha1.artifact_inputs import MountedModel, PrebuiltInput
from specdec_operator.api.v1alpha1.model_artifact import ModelArtifactSpec
from specdec_operator.planning.artifact_request import ArtifactRequest
from specdec_operator.planning.calibration import texts_of
from specdec_operator.planning.engine_build import BuildContent, built_engine
from specdec_operator.planning.engine_expectations import engine_expectation
from specdec_operator.planning.engine_limits import engine_roles, limit_refusals, limits, split_refusals
from specdec_operator.planning.engine_rules import architecture_refusals, is_prebuilt
from specdec_operator.planning.keys import content_key, short
from specdec_operator.planning.memory import memory_refusals
from specdec_operator.planning.refusal import Refused
from specdec_operator.pod.inputs import InspectEngineInput

if TYPE_CHECKING:
    from collections.abc import Mapping

    from specdec_operator.api.v1alpha1.model_facts import DataSetFacts, ModelFacts
    from specdec_operator.api.v1alpha1.source import ClaimSource
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModelSpec
    from specdec_operator.planning.resolution import Resolution

PREBUILT_DIRECTORY = "/engine"
"""Where a Job that inspects an engine mounts it."""


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
    limit = limits(spec, resolution, facts) if support else None
    refusals = split_refusals(spec, facts)
    if limit is not None:
        refusals += architecture_refusals(spec, resolution, facts) + limit_refusals(spec, limit, facts)
    # The estimate means nothing for a model that can't be split or built as asked.
    refusals = refusals or memory_refusals(spec, resolution, facts, limit=limit)
    if refusals:
        raise Refused(tuple(refusals))
    if support is None or limit is None:
        return ()
    return tuple(
        _inspected(role, spec, resolution)
        if is_prebuilt(role, spec)
        else built_engine(
            role,
            spec,
            resolution,
            support=support,
            limit=limit,
            content=BuildContent(facts=facts, models=models, texts=texts_of(role, spec, models, data_sets or {})),
        )
        for role in engine_roles(spec)
    )


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
            claim_name=source.claim_name,
            prebuilt=PrebuiltInput(sub_path=sub_path, expectation=expected.to_json()),
            **resolution.jobs,
        ),
        yields=MountedModel(claim_name=source.claim_name, sub_path=sub_path),
    )


def _prebuilt(role: str, spec: SpeculativeModelSpec) -> ClaimSource:
    prebuilt = spec.engine.prebuilt if spec.engine else None
    source = (prebuilt.target if role == "target" else prebuilt.draft) if prebuilt else None
    if source is None:
        raise KeyError(role)
    return source

"""Engines: the commands that build them, and the key that decides their content."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specdec_operator.api.v1alpha1.model_artifact import (
    BuildInput,
    BuildStep,
    JobGpu,
    ModelArtifactSpec,
    MountedModel,
)
from specdec_operator.planning.acquire import ArtifactRequest, job_pod
from specdec_operator.planning.engine_limits import EngineLimits, limit_refusals, limits, ranks_of, split_refusals
from specdec_operator.planning.keys import content_key, short
from specdec_operator.planning.refusal import Refused

if TYPE_CHECKING:
    from specdec_operator.api.v1alpha1.model_artifact import ModelFacts
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModelSpec
    from specdec_operator.planning.resolution import Resolution
    from specdec_operator.runtimes.table import EngineSupport

BUILD_PROGRAM_VERSION = 1
"""Part of every engine's key: raised when the build program makes different engines from the same input."""
_LEAST_BATCHED_TOKENS = 8192


def plan_engines(
    spec: SpeculativeModelSpec,
    resolution: Resolution,
    *,
    facts: dict[str, ModelFacts],
    models: dict[str, MountedModel],
) -> tuple[ArtifactRequest, ...]:
    """The engines that a spec needs, target first; empty on other backends.

    Args:
        facts: Facts per role.
        models: Where each role's model lies.

    Raises:
        Refused: A model can't be split as asked, an architecture has no converter, or a limit exceeds the context.
    """
    support = resolution.release.tensorrt_engine
    built = resolution.backend == "TensorRTEngine" and support is not None
    refusals = split_refusals(spec, facts) + (limit_refusals(spec, resolution, facts) if built else [])
    if refusals:
        raise Refused(tuple(refusals))
    if not built or support is None:
        return ()
    return tuple(_engine(role, spec, resolution, support=support, facts=facts, model=models[role]) for role in models)


def _engine(
    role: str,
    spec: SpeculativeModelSpec,
    resolution: Resolution,
    *,
    support: EngineSupport,
    facts: dict[str, ModelFacts],
    model: MountedModel,
) -> ArtifactRequest:
    ranks = ranks_of(role, spec)
    steps = build_steps(support, limits(spec, resolution, facts), tensor=ranks, verifies=role == "target")
    product = resolution.gpu_product or ""
    key = content_key(
        {
            "model": facts[role].commit or facts[role].content_digest,
            "steps": [step.model_dump() for step in steps],
            "tensorrtLLM": resolution.release.tensorrt_llm,
            "image": spec.runtime.image.reference if spec.runtime.image else "",
            "gpuProduct": product,
            "buildProgram": BUILD_PROGRAM_VERSION,
        }
    )
    claim = resolution.store_claim or ""
    directory = f"engines/{short(key)}"
    return ArtifactRequest(
        role=f"{role}-engine",
        name=f"engine-{short(content_key({'key': key, 'claim': claim}))}",
        spec=ModelArtifactSpec(
            type="Engine",
            key=key,
            image=resolution.image.reference,
            image_pull_policy=resolution.image.pull_policy,
            claim_name=claim,
            build=BuildInput(
                model=model,
                steps=list(steps),
                directory=directory,
                ranks=ranks,
                tensorrt_llm_version=resolution.release.required_tensorrt_llm,
                weight_bytes=facts[role].weight_bytes,
            ),
            gpu=JobGpu(
                resource_name=spec.placement.gpu.extended_resource or "nvidia.com/gpu", count=1, product=product
            ),
            pod=job_pod(spec, resolution),
        ),
        yields=MountedModel(claim_name=claim, sub_path=directory),
    )


def _gpu(spec: SpeculativeModelSpec, product: str) -> JobGpu:
    resource = spec.placement.gpu.extended_resource or "nvidia.com/gpu"
    return JobGpu(resource_name=resource, count=1, product=product)


def build_steps(support: EngineSupport, limit: EngineLimits, *, tensor: int, verifies: bool) -> tuple[BuildStep, ...]:
    """The commands of one engine: convert the checkpoint, then build.

    Args:
        tensor: Ranks of the engine; a matter of the checkpoint, not of trtllm-build.
        verifies: Whether the engine takes drafted tokens to verify (the target of a drafting pair).
    """
    convert = [
        "python3",
        "|".join(support.converters["llama"]),
        *("--model_dir", "{model}", "--output_dir", "{checkpoint}"),
        *("--dtype", limit.data_type, "--tp_size", str(tensor), "--pp_size", "1"),
    ]
    # Without chunked context a prompt is taken in one piece, so it must fit into one batch of tokens.
    batched = max(_LEAST_BATCHED_TOKENS, limit.input_length, limit.batch * (limit.draft_tokens + 1))
    build = [
        "trtllm-build",
        *("--checkpoint_dir", "{checkpoint}", "--output_dir", "{engine}"),
        *("--max_batch_size", str(limit.batch), "--max_beam_width", "1"),
        *("--max_input_len", str(limit.input_length), "--max_seq_len", str(limit.sequence_length)),
        *("--max_num_tokens", str(batched)),
        *("--gemm_plugin", limit.data_type, "--logits_dtype", limit.logits_data_type),
        *("--kv_cache_type", "paged", "--use_paged_context_fmha", "enable"),
    ]
    if verifies and limit.draft_tokens:
        build += ["--speculative_decoding_mode", "draft_tokens_external", "--max_draft_len", str(limit.draft_tokens)]
    return (BuildStep(name="convert", argv=convert), BuildStep(name="build", argv=build))

"""Engines: the limits they are built with, the commands that build them, and the key that decides their content."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from specdec_operator.api.v1alpha1.model_artifact import (
    BuildInput,
    BuildStep,
    JobGpu,
    ModelArtifactSpec,
    MountedModel,
)
from specdec_operator.api.v1alpha1.runtime import Engine
from specdec_operator.planning.acquire import ArtifactRequest, placed_pod
from specdec_operator.planning.keys import content_key, short
from specdec_operator.planning.refusal import Refusal, Refused

if TYPE_CHECKING:
    from specdec_operator.api.v1alpha1.model_artifact import ModelFacts
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModelSpec
    from specdec_operator.planning.resolution import Resolution
    from specdec_operator.runtimes.table import EngineSupport

BUILD_PROGRAM_VERSION = 1
"""Part of every engine's key: raised when the build program makes different engines from the same input."""

_LLAMA_FAMILY = ("LlamaForCausalLM", "MistralForCausalLM")
_DEFAULT_BATCH = 8
_DEFAULT_SEQUENCE = 3072
_MINIMUM_BATCHED_TOKENS = 8192


@dataclass(frozen=True, kw_only=True)
class EngineLimits:
    """Limits in tokens and requests, drafted tokens included in the sequence."""

    batch: int
    input_length: int
    sequence_length: int
    draft_tokens: int
    data_type: str
    logits_data_type: str


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
        Refused: An architecture has no converter, or the limits exceed a model's context.
    """
    support = resolution.release.tensorrt_engine
    if resolution.backend != "TensorRTEngine" or support is None:
        return ()
    refusals = [refusal for role in models for refusal in _architecture(role, facts[role])]
    refusals += _context(spec, facts)
    if refusals:
        raise Refused(tuple(refusals))
    return tuple(_engine(role, spec, resolution, support=support, facts=facts, model=models[role]) for role in models)


def serving_batch(spec: SpeculativeModelSpec) -> int:
    """The most requests that Triton hands over at once; left out, as many as the engine takes."""
    built_for = spec.engine.max_batch_size if spec.engine else None
    return spec.serving.max_batch_size or built_for or _DEFAULT_BATCH


def limits(spec: SpeculativeModelSpec, resolution: Resolution, facts: dict[str, ModelFacts]) -> EngineLimits:
    """Engine limits with nothing left open: one set for both engines of a pair."""
    engine = spec.engine or Engine()
    context = min(fact.context_length for fact in facts.values())
    sequence = engine.max_sequence_length or min(_DEFAULT_SEQUENCE, context - resolution.draft_tokens)
    declared = facts["target"].data_type
    return EngineLimits(
        batch=engine.max_batch_size or serving_batch(spec),
        input_length=engine.max_input_length or max(1, sequence * 2 // 3),
        sequence_length=sequence + resolution.draft_tokens,
        draft_tokens=resolution.draft_tokens,
        data_type=engine.data_type or (declared if declared in ("float16", "bfloat16") else "float16"),
        logits_data_type=engine.logits_data_type,
    )


def _architecture(role: str, facts: ModelFacts) -> list[Refusal]:
    if facts.architecture in _LLAMA_FAMILY:
        return []
    return [
        Refusal(
            reason="UnsupportedArchitecture",
            path=f"spec.{role}.source",
            message=f"no converter is known for {facts.architecture} on TensorRTEngine; known: "
            f"{', '.join(_LLAMA_FAMILY)}. Use the backend LLMAPI for others",
        )
    ]


def _context(spec: SpeculativeModelSpec, facts: dict[str, ModelFacts]) -> list[Refusal]:
    asked = spec.engine.max_sequence_length if spec.engine else None
    short_ones = [role for role, fact in facts.items() if asked is not None and asked > fact.context_length]
    return [
        Refusal(
            reason="ContextTooShort",
            path="spec.engine.maxSequenceLength",
            message=f"{asked} tokens exceed the {role}'s context of {facts[role].context_length}: lower it",
        )
        for role in short_ones
    ]


def _engine(
    role: str,
    spec: SpeculativeModelSpec,
    resolution: Resolution,
    *,
    support: EngineSupport,
    facts: dict[str, ModelFacts],
    model: MountedModel,
) -> ArtifactRequest:
    parallelism = spec.target.parallelism if role == "target" else (spec.draft or spec.target).parallelism
    steps = build_steps(support, limits(spec, resolution, facts), tensor=parallelism.tensor, verifies=role == "target")
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
                ranks=parallelism.tensor,
                tensorrt_llm_version=resolution.release.tensorrt_llm,
                weight_bytes=facts[role].weight_bytes,
            ),
            gpu=JobGpu(resource_name=spec.placement.gpu.resource_name, count=1, product=product),
            pod=placed_pod(spec, resolution),
        ),
        yields=MountedModel(claim_name=claim, sub_path=directory),
    )


def build_steps(support: EngineSupport, limit: EngineLimits, *, tensor: int, verifies: bool) -> tuple[BuildStep, ...]:
    """The commands of one engine: convert the checkpoint, then build.

    Args:
        tensor: Ranks of the engine; a matter of the checkpoint, not of trtllm-build.
        verifies: Whether the engine takes drafted tokens to verify (the target of a drafting pair).
    """
    convert = [
        "python3",
        "|".join(support.convert_llama),
        *("--model_dir", "{model}", "--output_dir", "{checkpoint}"),
        *("--dtype", limit.data_type, "--tp_size", str(tensor), "--pp_size", "1"),
    ]
    build = [
        "trtllm-build",
        *("--checkpoint_dir", "{checkpoint}", "--output_dir", "{engine}"),
        *("--max_batch_size", str(limit.batch), "--max_beam_width", "1"),
        *("--max_input_len", str(limit.input_length), "--max_seq_len", str(limit.sequence_length)),
        *("--max_num_tokens", str(max(_MINIMUM_BATCHED_TOKENS, limit.batch * (limit.draft_tokens + 1)))),
        *("--gemm_plugin", limit.data_type, "--logits_dtype", limit.logits_data_type),
        *("--kv_cache_type", "paged", "--use_paged_context_fmha", "enable"),
    ]
    if verifies and limit.draft_tokens:
        build += ["--speculative_decoding_mode", "draft_tokens_external", "--max_draft_len", str(limit.draft_tokens)]
    return (BuildStep(name="convert", argv=convert), BuildStep(name="build", argv=build))

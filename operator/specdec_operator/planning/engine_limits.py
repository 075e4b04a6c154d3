"""The limits that engines are built with, and what a model's own shape forbids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from specdec_operator.api.v1alpha1.runtime import Engine
from specdec_operator.planning.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from specdec_operator.api.v1alpha1.model_artifact import ModelFacts
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModelSpec
    from specdec_operator.planning.resolution import Resolution

_LLAMA_FAMILY = ("LlamaForCausalLM", "MistralForCausalLM")
_DEFAULT_BATCH = 8
_DEFAULT_SEQUENCE = 3072


@dataclass(frozen=True, kw_only=True)
class EngineLimits:
    """Limits in tokens and requests, drafted tokens included in the sequence."""

    batch: int
    input_length: int
    sequence_length: int
    draft_tokens: int
    data_type: str
    logits_data_type: str


def serving_batch(spec: SpeculativeModelSpec) -> int:
    """The most requests that Triton hands over at once; left out, as many as the engine takes."""
    built_for = spec.engine.max_batch_size if spec.engine else None
    return spec.serving.max_batch_size or built_for or _DEFAULT_BATCH


def limits(spec: SpeculativeModelSpec, resolution: Resolution, facts: Mapping[str, ModelFacts]) -> EngineLimits:
    """Engine limits with nothing left open: one set for both engines of a pair."""
    engine = spec.engine or Engine()
    context = min(fact.context_length for fact in facts.values())
    wanted = max(_DEFAULT_SEQUENCE, (engine.max_input_length or 0) * 3 // 2)
    sequence = engine.max_sequence_length or min(wanted, context - resolution.draft_tokens)
    declared = facts["target"].data_type
    return EngineLimits(
        batch=engine.max_batch_size or serving_batch(spec),
        input_length=engine.max_input_length or max(1, sequence * 2 // 3),
        sequence_length=sequence + resolution.draft_tokens,
        draft_tokens=resolution.draft_tokens,
        data_type=engine.data_type or (declared if declared in ("float16", "bfloat16") else "float16"),
        logits_data_type=engine.logits_data_type,
    )


def ranks_of(role: str, spec: SpeculativeModelSpec) -> int:
    """The ranks that a role's model is split over."""
    model = spec.draft if _split_as(role, spec) == "draft" else spec.target
    return (model or spec.target).parallelism.tensor


def split_refusals(spec: SpeculativeModelSpec, facts: Mapping[str, ModelFacts]) -> list[Refusal]:
    """Models that can't be split over as many GPUs as asked."""
    return [refusal for role, fact in facts.items() for refusal in _split(role, spec, fact)]


def limit_refusals(
    spec: SpeculativeModelSpec, resolution: Resolution, facts: Mapping[str, ModelFacts]
) -> list[Refusal]:
    """Models without a converter, and limits that exceed a model's context."""
    unknown = [refusal for role, fact in facts.items() for refusal in _architecture(role, fact)]
    return unknown + _context(spec, resolution, facts)


def _split(role: str, spec: SpeculativeModelSpec, facts: ModelFacts) -> list[Refusal]:
    ranks = ranks_of(role, spec)
    heads, shared = facts.attention_heads, facts.key_value_heads
    if heads % ranks == 0 and (shared % ranks == 0 or ranks % shared == 0):
        return []
    return [
        Refusal(
            reason="ParallelismMismatch",
            path=f"spec.{_split_as(role, spec)}.parallelism.tensor",
            message=f"the {role}'s {heads} attention heads and {shared} key-value heads can't be split over {ranks} "
            "GPUs: choose a number that divides both",
        )
    ]


def _split_as(role: str, spec: SpeculativeModelSpec) -> str:
    # An EAGLE-3 head is split like its target, so it has no ranks of its own.
    return role if spec.speculation.method == "DraftTarget" else "target"


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


def _context(spec: SpeculativeModelSpec, resolution: Resolution, facts: Mapping[str, ModelFacts]) -> list[Refusal]:
    asked = spec.engine.max_sequence_length if spec.engine else None
    short_ones = [role for role, fact in facts.items() if asked is not None and asked > fact.context_length]
    if not short_ones:
        return _room(spec, resolution, facts)
    return [
        Refusal(
            reason="ContextTooShort",
            path="spec.engine.maxSequenceLength",
            message=f"{asked} tokens exceed the {role}'s context of {facts[role].context_length}: lower it",
        )
        for role in short_ones
    ]


def _room(spec: SpeculativeModelSpec, resolution: Resolution, facts: Mapping[str, ModelFacts]) -> list[Refusal]:
    limit = limits(spec, resolution, facts)
    sequence = limit.sequence_length - limit.draft_tokens
    if limit.input_length < sequence:
        return []
    declared = spec.engine is not None and spec.engine.max_input_length is not None
    return [
        Refusal(
            reason="ContextTooShort",
            path="spec.engine.maxInputLength" if declared else "spec.speculation.maxDraftTokens",
            message=f"a sequence of {max(sequence, 0)} tokens leaves no room for an answer to a prompt of "
            f"{limit.input_length}: lower {'maxInputLength' if declared else 'maxDraftTokens'}",
        )
    ]

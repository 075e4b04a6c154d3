"""The limits that engines are built with, and what a model's own shape forbids."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specdec_operator.api.v1alpha1.runtime import Engine
from specdec_operator.api.v1alpha1.speculative_model import default_backend
from specdec_operator.planning.refusal import Refusal
from specdec_operator.runtimes.build_steps import EngineLimits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from specdec_operator.api.v1alpha1.model import Parallelism
    from specdec_operator.api.v1alpha1.model_facts import ModelFacts
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModelSpec
    from specdec_operator.planning.resolution import Resolution

_DEFAULT_BATCH = 8
_DEFAULT_SEQUENCE = 3072
_LEAST_BATCHED_TOKENS = 8192
_DRAFT_LENGTH_FIELDS = {"Lookahead": "spec.speculation.lookahead", "ReDrafter": "spec.speculation.reDrafter"}
_WITHOUT_ATTENTION = ("Medusa", "ReDrafter")
"""Methods whose heads have no attention of their own to split."""


def engine_roles(spec: SpeculativeModelSpec) -> tuple[str, ...]:
    """The models that have an engine of their own, target first; a head is built into its target's."""
    return ("target", "draft") if spec.draft and spec.speculation.method == "DraftTarget" else ("target",)


def serving_batch(spec: SpeculativeModelSpec) -> int:
    """The most requests that Triton hands over at once; left out, as many as the engine takes."""
    built_for = spec.engine.max_batch_size if spec.engine else None
    return spec.serving.max_batch_size or built_for or _DEFAULT_BATCH


def limits(spec: SpeculativeModelSpec, resolution: Resolution, facts: Mapping[str, ModelFacts]) -> EngineLimits:
    """Engine limits with nothing left open: one set for both engines of a pair."""
    engine = spec.engine or Engine()
    context = min(facts[role].context_length for role in engine_roles(spec) if role in facts)
    wanted = max(_DEFAULT_SEQUENCE, (engine.max_input_length or 0) * 3 // 2)
    sequence = engine.max_sequence_length or min(wanted, context - resolution.draft_tokens)
    input_length = engine.max_input_length or max(1, sequence * 2 // 3)
    batch = engine.max_batch_size or serving_batch(spec)
    declared = facts["target"].data_type
    return EngineLimits(
        batch=batch,
        input_length=input_length,
        sequence_length=sequence + resolution.draft_tokens,
        # Without chunked context a prompt is taken in one piece, so it must fit into one batch of tokens.
        batched_tokens=engine.max_batched_tokens
        or max(_LEAST_BATCHED_TOKENS, input_length, batch * (resolution.draft_tokens + 1)),
        draft_tokens=resolution.draft_tokens,
        data_type=engine.data_type or (declared if declared in ("float16", "bfloat16") else "float16"),
        logits_data_type=engine.logits_data_type,
    )


def parallelism_of(role: str, spec: SpeculativeModelSpec) -> Parallelism:
    """How a role's model is split."""
    model = spec.draft if _split_as(role, spec) == "draft" else spec.target
    return (model or spec.target).parallelism


def ranks_of(role: str, spec: SpeculativeModelSpec) -> int:
    """The ranks that a role's model is split over."""
    return parallelism_of(role, spec).ranks


def split_refusals(spec: SpeculativeModelSpec, facts: Mapping[str, ModelFacts]) -> list[Refusal]:
    """Models that can't be split over as many GPUs as asked."""
    whole = spec.speculation.method in _WITHOUT_ATTENTION
    split = {role: fact for role, fact in facts.items() if role == "target" or not whole}
    found: dict[str, Refusal] = {}
    for role, fact in split.items():
        for refusal in (*_split(role, spec, fact), *_stages(role, spec, fact)):
            # A head is split as its target: one number is wrong, and it is said once.
            found.setdefault(refusal.path, refusal)
    return list(found.values())


def limit_refusals(spec: SpeculativeModelSpec, limit: EngineLimits, facts: Mapping[str, ModelFacts]) -> list[Refusal]:
    """Limits that exceed a model's context or contradict each other."""
    return _context(spec, limit, facts) + _batched_tokens(spec, limit)


def _split(role: str, spec: SpeculativeModelSpec, facts: ModelFacts) -> list[Refusal]:
    ranks = parallelism_of(role, spec).tensor
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


def _stages(role: str, spec: SpeculativeModelSpec, facts: ModelFacts) -> list[Refusal]:
    stages = parallelism_of(role, spec).pipeline
    if role not in engine_roles(spec) or default_backend(spec) != "TensorRTEngine" or facts.layers % stages == 0:
        return []
    return [
        Refusal(
            reason="ParallelismMismatch",
            path=f"spec.{role}.parallelism.pipeline",
            message=f"the {role}'s {facts.layers} layers can't be split into {stages} equal stages: choose a number "
            "that divides them",
        )
    ]


def _split_as(role: str, spec: SpeculativeModelSpec) -> str:
    # A head is split like its target, so it has no ranks of its own.
    return role if spec.speculation.method == "DraftTarget" else "target"


def _context(spec: SpeculativeModelSpec, limit: EngineLimits, facts: Mapping[str, ModelFacts]) -> list[Refusal]:
    asked = spec.engine.max_sequence_length if spec.engine else None
    built = {role: facts[role].context_length for role in engine_roles(spec) if role in facts}
    short_ones = [role for role, context in built.items() if asked is not None and asked > context]
    if not short_ones:
        return _room(spec, limit)
    return [
        Refusal(
            reason="ContextTooShort",
            path="spec.engine.maxSequenceLength",
            message=f"{asked} tokens exceed the {role}'s context of {built[role]}: lower it",
        )
        for role in short_ones
    ]


def _room(spec: SpeculativeModelSpec, limit: EngineLimits) -> list[Refusal]:
    sequence = limit.sequence_length - limit.draft_tokens
    if limit.input_length < sequence:
        return []
    declared = spec.engine is not None and spec.engine.max_input_length is not None
    drafted = _DRAFT_LENGTH_FIELDS.get(spec.speculation.method, "spec.speculation.maxDraftTokens")
    field = "spec.engine.maxInputLength" if declared else drafted
    return [
        Refusal(
            reason="ContextTooShort",
            path=field,
            message=f"a sequence of {max(sequence, 0)} tokens leaves no room for an answer to a prompt of "
            f"{limit.input_length}: lower {field.rpartition('.')[2]}",
        )
    ]


def _batched_tokens(spec: SpeculativeModelSpec, limit: EngineLimits) -> list[Refusal]:
    drafted = limit.batch * (limit.draft_tokens + 1)
    whole = 0 if spec.serving.chunked_context else limit.input_length
    if limit.batched_tokens >= max(drafted, whole):
        return []
    why = (
        f"{limit.batch} requests with {limit.draft_tokens} drafted tokens and one of their own each take {drafted}"
        if drafted > whole
        else f"a prompt of {limit.input_length} is taken in one piece unless serving.chunkedContext is true"
    )
    return [
        Refusal(
            reason="BatchedTokensTooFew",
            path="spec.engine.maxBatchedTokens",
            message=f"{limit.batched_tokens} tokens are too few, since {why}: raise it to {max(drafted, whole)}, or "
            "leave it out",
        )
    ]

"""What vLLM of a release needs of a pair beside that its models fit each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specdec_operator.planning.pair_kinds import kind_of
from specdec_operator.planning.refusal import Refusal
from specdec_operator.runtimes.architectures import known_architectures
from specdec_operator.runtimes.vllm_arguments import BLOCK_TOKENS, LONG_DRAFTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from specdec_operator.api.v1alpha1.model_facts import ModelFacts
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModelSpec
    from specdec_operator.planning.resolution import Resolution

_CONVERTED_MEDUSA = "medusa"
"""The `model_type` of MEDUSA heads that were converted for vLLM."""


def vllm_refusals(spec: SpeculativeModelSpec, resolution: Resolution, facts: Mapping[str, ModelFacts]) -> list[Refusal]:
    """What the release's vLLM can't do with these models."""
    method, target, draft = spec.speculation.method, facts["target"], facts.get("draft")
    refusals = _medusa(resolution, draft) if method == "Medusa" and draft else []
    refusals += _rounds(resolution, target) if method == "MTP" else []
    return refusals + _cache(spec, resolution, facts)


def _cache(spec: SpeculativeModelSpec, resolution: Resolution, facts: Mapping[str, ModelFacts]) -> list[Refusal]:
    """A cache that vLLM would not start with: it must hold one request of the served length."""
    support, asked = resolution.release.vllm, spec.serving.kv_cache.max_tokens
    capped = spec.speculation.method in ("Eagle", "Eagle3") and support and not support.at_least(LONG_DRAFTS)
    contexts = [fact.context_length for role, fact in facts.items() if role == "target" or capped]
    length = min(spec.serving.max_sequence_length or min(contexts), *contexts)
    if asked is None or asked // BLOCK_TOKENS * BLOCK_TOKENS >= length:
        return []
    least = -(-length // BLOCK_TOKENS) * BLOCK_TOKENS
    message = (
        f"a cache of {asked} tokens, in blocks of {BLOCK_TOKENS}, holds no request of {length}: raise it to {least}, "
        "or lower serving.maxSequenceLength"
    )
    return [Refusal(reason="CacheTooSmall", path="spec.serving.kvCache.maxTokens", message=message)]


def _rounds(resolution: Resolution, target: ModelFacts) -> list[Refusal]:
    """More tokens than next-token layers: vLLM runs all layers again, so many whole times, or not at all."""
    layers, tokens, version = target.next_token_layers, resolution.draft_tokens, resolution.release.version_for("VLLM")
    if not layers or tokens <= layers:
        return []
    lists = known_architectures("VLLM", "MTP")
    once = any(known.runs_once(target.architecture, version=version) for known in lists)
    if tokens % layers == 0 and not once:
        return []
    rounds = f"once with vLLM {version}" if once else "once or some whole times"
    message = (
        f"vLLM drafts with all {layers} next-token layers of the target, {rounds}, and {tokens} are more"
        f"{'' if once else f' and no multiple of {layers}'}: set it to {layers if once else tokens // layers * layers}"
    )
    return [Refusal(reason="OptionContradiction", path="spec.speculation.maxDraftTokens", message=message)]


def _medusa(resolution: Resolution, draft: ModelFacts) -> list[Refusal]:
    support = resolution.release.vllm
    published = kind_of(draft) == "MedusaHeads" and draft.model_type != _CONVERTED_MEDUSA
    if support is None or not published or support.published_medusa_heads:
        return []
    return [
        Refusal(
            reason="MedusaHeadsNotConverted",
            path="spec.draft.source",
            message=f"vLLM {support.version} of release {resolution.release.name} loads MEDUSA heads only once they "
            "are converted (config.json with model_type medusa): name converted heads, another release in "
            "runtime.release, or the backend TensorRTEngine, which takes them as published",
        )
    ]

"""What model.json says to vLLM: every key is an engine argument of the version inside the release."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from specdec_operator.runtimes.serving import MODEL_DIRECTORIES, Derived

if TYPE_CHECKING:
    from specdec_operator.runtimes.serving import ServingRequest
    from specdec_operator.runtimes.table import VllmSupport

_MEMORY_PERCENT = 90
BLOCK_TOKENS = 16
LONG_DRAFTS = "0.27.1"
"""From here on an EAGLE head may be shorter than its target."""
_LEAST_BATCHED_TOKENS = 2048
"""vLLM's own smallest default."""


@dataclass(frozen=True, kw_only=True)
class EngineArguments:
    """Engine arguments, and which of them no spec asked for."""

    values: dict[str, Any]
    derived: tuple[Derived, ...] = ()


def is_first_engine(request: ServingRequest, support: VllmSupport) -> bool:
    """Whether Triton's vLLM backend runs the engine's first generation (V0), as it does until 0.10.2 unless told."""
    told = support.environment_for(request.method).get("VLLM_USE_V1") == "1"
    return not told and not support.at_least("0.10.2")


def engine_arguments(request: ServingRequest, support: VllmSupport, *, speculation: dict[str, Any]) -> EngineArguments:
    """All engine arguments.

    Args:
        speculation: Those that make it speculate.
    """
    serving, split = request.serving, request.target_parallelism
    length, capped = _length(request, support)
    chunked, forced = _chunked(request, support)
    tokens, raised = _batched_tokens(request, length=length, chunked=chunked)
    limits = {"max_model_len": length, "max_num_batched_tokens": tokens, "enable_chunked_prefill": chunked}
    values: dict[str, Any] = {
        "model": MODEL_DIRECTORIES["target"],
        "tensor_parallel_size": split.tensor,
        "pipeline_parallel_size": split.pipeline,
        "max_num_seqs": request.batch,
        **{key: value for key, value in limits.items() if value is not None},
        "gpu_memory_utilization": (serving.kv_cache.free_gpu_memory_percent or _MEMORY_PERCENT) / 100,
        "enable_prefix_caching": serving.kv_cache.reuse,
        "tokenizer_mode": serving.tokenizer.mode.lower(),
        # With statistics off there is nothing for REPORT_CUSTOM_METRICS to report.
        "disable_log_stats": False,
        **_cache_blocks(serving.kv_cache.max_tokens),
        **speculation,
    }
    return EngineArguments(values=values, derived=(*capped, *forced, *raised))


def _length(request: ServingRequest, support: VllmSupport) -> tuple[int | None, tuple[Derived, ...]]:
    declared = request.serving.max_sequence_length
    head = request.draft_context_length
    is_head = request.method in ("Eagle", "Eagle3")
    wanted = declared or request.context_length
    if not is_head or head is None or support.at_least(LONG_DRAFTS) or (wanted is not None and wanted <= head):
        return declared, ()
    reason = (
        f"vLLM {support.version} reads past the head's {head} positions where a text is longer; "
        f"{LONG_DRAFTS} and newer do not"
    )
    return head, (Derived(name="serving.maxSequenceLength", value=str(head), reason=reason),)


def _chunked(request: ServingRequest, support: VllmSupport) -> tuple[bool | None, tuple[Derived, ...]]:
    declared = request.serving.chunked_context
    if request.method not in support.whole_prompt_methods:
        return declared, ()
    if not declared:
        return False, ()
    reason = f"the engine of vLLM {support.version} inside Triton takes no long prompts in pieces with {request.method}"
    return False, (Derived(name="serving.chunkedContext", value="false", reason=reason),)


def _batched_tokens(
    request: ServingRequest, *, length: int | None, chunked: bool | None
) -> tuple[int | None, tuple[Derived, ...]]:
    """The most tokens of one step: room for a token of every request and what its draft adds."""
    declared = request.serving.max_batched_tokens
    extra = 1 if request.method == "DraftTarget" else 0
    needed = request.batch * (1 + extra) + 1
    if chunked is False:
        # A prompt that is not taken in pieces must fit whole.
        needed = max(needed, length or request.context_length or 0)
    if declared is None:
        return (needed if needed > _LEAST_BATCHED_TOKENS and chunked is not False else None), ()
    if declared >= needed:
        return declared, ()
    reason = f"{declared} leave no room for {request.batch} requests with their drafts, or for a whole prompt"
    return needed, (Derived(name="serving.maxBatchedTokens", value=str(needed), reason=reason),)


def _cache_blocks(max_tokens: int | None) -> dict[str, int]:
    if max_tokens is None:
        return {}
    return {"block_size": BLOCK_TOKENS, "num_gpu_blocks_override": max(1, max_tokens // BLOCK_TOKENS)}

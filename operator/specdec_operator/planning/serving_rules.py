"""What a spec asks of placement and serving that its backend or method can't do: refused before any Job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from specdec_operator.planning.placement import logits_transfer
from specdec_operator.planning.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from specdec_operator.api.v1alpha1.runtime import Backend
    from specdec_operator.api.v1alpha1.serving import Serving
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModelSpec

_ONE_STAGE_METHODS: Final = ("Eagle", "ReDrafter")
_SAMPLING_METHODS: Final = ("DraftTarget", "None")
_ENGINE: Final = ("TensorRTEngine",)
_TENSORRT: Final = ("LLMAPI", "TensorRTEngine")
_WITHOUT_BUILD: Final = ("LLMAPI", "VLLM")


@dataclass(frozen=True, kw_only=True)
class _Option:
    """An option of `serving` that not every backend has."""

    field: str
    asked: Callable[[Serving], bool]
    backends: tuple[Backend, ...]
    remedy: str = "remove it"


_OPTIONS: Final = (
    _Option(field="maxQueueDelayMicroseconds", asked=lambda s: s.max_queue_delay_microseconds > 0, backends=_ENGINE),
    _Option(field="maxQueueSize", asked=lambda s: s.max_queue_size > 0, backends=_ENGINE),
    _Option(
        field="maxSequenceLength",
        asked=lambda s: s.max_sequence_length is not None,
        backends=_WITHOUT_BUILD,
        remedy="engines are built for a length: give engine.maxSequenceLength",
    ),
    _Option(
        field="maxBatchedTokens",
        asked=lambda s: s.max_batched_tokens is not None,
        backends=_WITHOUT_BUILD,
        remedy="engines are built for a number of tokens: give engine.maxBatchedTokens",
    ),
    _Option(field="schedulerPolicy", asked=lambda s: s.scheduler_policy != "GuaranteedNoEvict", backends=_TENSORRT),
    _Option(field="maxAttentionWindow", asked=lambda s: s.max_attention_window is not None, backends=_TENSORRT),
    _Option(
        field="normalizeLogProbabilities", asked=lambda s: s.normalize_log_probabilities is not None, backends=_ENGINE
    ),
    _Option(field="accumulateTokens", asked=lambda s: s.accumulate_tokens, backends=_ENGINE),
    _Option(field="decodingMode", asked=lambda s: s.decoding_mode is not None, backends=_ENGINE),
    _Option(field="kvCache.hostMemory", asked=lambda s: s.kv_cache.host_memory is not None, backends=_TENSORRT),
    _Option(field="instances.preprocessing", asked=lambda s: s.instances.preprocessing is not None, backends=_ENGINE),
    _Option(field="instances.postprocessing", asked=lambda s: s.instances.postprocessing is not None, backends=_ENGINE),
    _Option(field="instances.businessLogic", asked=lambda s: s.instances.business_logic is not None, backends=_ENGINE),
    _Option(field="tokenizer.mode", asked=lambda s: s.tokenizer.mode != "Auto", backends=_WITHOUT_BUILD),
    _Option(field="tokenizer.addSpecialTokens", asked=lambda s: not s.tokenizer.add_special_tokens, backends=_ENGINE),
    _Option(field="tokenizer.skipSpecialTokens", asked=lambda s: not s.tokenizer.skip_special_tokens, backends=_ENGINE),
)


def refusals(spec: SpeculativeModelSpec, backend: Backend) -> list[Refusal]:
    """Options that the backend has not, and those that the method does not go with."""
    found = [
        Refusal(
            reason="OptionNotOnBackend",
            path=f"spec.serving.{option.field}",
            message=f"{backend} has no such option, {' and '.join(option.backends)} has: {option.remedy}",
        )
        for option in _OPTIONS
        if backend not in option.backends and option.asked(spec.serving)
    ]
    if backend == "TensorRTEngine":
        found += _engine(spec)
    return [*found, *_devices(spec, backend), *_pipeline(spec, backend)]


def _devices(spec: SpeculativeModelSpec, backend: Backend) -> list[Refusal]:
    declared = spec.placement.target_devices
    if backend == "TensorRTEngine" or declared is None or declared == sorted(declared):
        return []
    message = f"{backend} takes a pod's GPUs in their own order: list targetDevices from 0 on, or leave them out"
    return [Refusal(reason="OptionNotOnBackend", path="spec.placement.targetDevices", message=message)]


def _engine(spec: SpeculativeModelSpec) -> list[Refusal]:
    serving, method = spec.serving, spec.speculation.method
    drafts = method == "DraftTarget"
    found = []
    if drafts and serving.streaming:
        message = "a draft and a target on TensorRTEngine answer in one piece: leave streaming out, or use the LLM API"
        found.append(_not_with("spec.serving.streaming", message))
    if serving.draft_kv_cache and not serving.draft_kv_cache.reuse:
        message = "the draft needs the cache of its earlier steps: leave reuse true"
        found.append(_not_with("spec.serving.draftKvCache.reuse", message))
    if serving.accumulate_tokens and not serving.streaming:
        message = "answers that come in one piece are not accumulated: set streaming as well, or remove it"
        found.append(_not_with("spec.serving.accumulateTokens", message))
    if serving.decoding_mode is not None and method not in _SAMPLING_METHODS:
        message = f"{method} decides how tokens are chosen: remove decodingMode"
        found.append(_not_with("spec.serving.decodingMode", message))
    if serving.instances.business_logic is not None and not (drafts or serving.accumulate_tokens):
        message = "only a draft and a target, or accumulateTokens, are served through business logic: remove it"
        found.append(_not_with("spec.serving.instances.businessLogic", message))
    return found + _logits(spec)


def _logits(spec: SpeculativeModelSpec) -> list[Refusal]:
    if spec.speculation.method != "DraftTarget" or not spec.placement.shared or logits_transfer(spec) != "Fast":
        return []
    message = (
        "fast logits go from GPU to GPU, and draftDevices and targetDevices have one in common: choose Standard or "
        "Disabled, or give each model devices of its own"
    )
    return [_not_with("spec.speculation.draftTarget.logitsTransfer", message)]


def _pipeline(spec: SpeculativeModelSpec, backend: Backend) -> list[Refusal]:
    if backend == "VLLM":
        # The version of vLLM decides it: speculation_rules.release_refusals.
        return []
    method = spec.speculation.method
    speculates = method != "None" if backend != "TensorRTEngine" else method in _ONE_STAGE_METHODS
    if spec.target.parallelism.pipeline == 1 or not speculates:
        return []
    return [
        Refusal(
            reason="PipelineNotSupported",
            path="spec.target.parallelism.pipeline",
            message=f"{method} on {backend} runs in one pipeline stage: set pipeline to 1 and raise tensor instead",
        )
    ]


def _not_with(path: str, message: str) -> Refusal:
    return Refusal(reason="OptionContradiction", path=path, message=message)

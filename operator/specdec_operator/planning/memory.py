"""Whether models, caches and what their runtime needs fit into the GPUs' memory, before any GPU is asked for.

Where two models share a GPU, the cache of each is bounded in tokens: a fraction of the free memory would depend on
which of them loads first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from specdec_operator.api.quantities import byte_count
from specdec_operator.planning.engine_limits import engine_roles, parallelism_of, serving_batch
from specdec_operator.planning.engine_rules import is_prebuilt
from specdec_operator.planning.model_memory import Share, share_of
from specdec_operator.planning.refusal import Refusal
from specdec_operator.runtimes.gpus import memory_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from specdec_operator.api.v1alpha1.model_facts import ModelFacts
    from specdec_operator.api.v1alpha1.serving import KvCache
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModelSpec
    from specdec_operator.planning.resolution import Resolution
    from specdec_operator.runtimes.build_steps import EngineLimits

_GIB: Final = 1024**3
_BLOCK_TOKENS: Final = 64
_VLLM_PERCENT: Final = 90
_CACHE_PERCENT: Final = 80
_WHOLE: Final = 100
_ENDLESS: Final = 2**31
_USUAL_TOKENS: Final = 2048
"""A request's length on LLMAPI where nothing is declared: that runtime shortens what it serves to what fits."""


@dataclass(frozen=True, kw_only=True)
class _Device:
    """The models of one GPU, by role, and its memory in bytes."""

    number: int
    shares: Mapping[str, Share]
    memory: int

    @property
    def needed(self) -> int:
        return sum(share.weights + share.working for share in self.shares.values())

    @property
    def token(self) -> int:
        return sum(share.token for share in self.shares.values())


def gpu_memory(spec: SpeculativeModelSpec, resolution: Resolution) -> int | None:
    """The memory of one GPU in bytes: as declared, or as its product's name says; None if neither does."""
    gpu = spec.placement.gpu
    if gpu.memory:
        return byte_count(gpu.memory)
    return memory_of(resolution.gpu_product or "", resource=gpu.resource_name or "")


def memory_refusals(
    spec: SpeculativeModelSpec,
    resolution: Resolution,
    facts: Mapping[str, ModelFacts],
    *,
    limit: EngineLimits | None,
) -> list[Refusal]:
    """Caches that hold no request, and GPUs that can't hold what is placed on them.

    GPUs are not judged where their memory is not known, or an engine is given; nor is a given engine's cache where the
    spec does not say how long its requests are.

    Args:
        limit: What the engines are built to take; None on other backends.
    """
    small = _small_caches(spec, limit) if limit else []
    if small:
        return small
    memory = gpu_memory(spec, resolution)
    if memory is None or (spec.engine and spec.engine.prebuilt):
        return []
    tokens = limit.sequence_length if limit else _request_tokens(spec, resolution, facts)
    batch = limit.batch if limit else serving_batch(spec)
    for device in _devices(spec, resolution, facts, batch=batch, memory=memory):
        usable = _usable(spec, resolution, memory)
        if device.needed > usable:
            return [_too_small(spec, resolution, device, usable=usable)]
        room = _room(spec, resolution, device)
        if tokens * device.token > room:
            return [_too_long(spec, resolution, device, tokens=tokens, room=room)]
    return []


def shared_gpu_tokens(
    spec: SpeculativeModelSpec,
    resolution: Resolution,
    facts: Mapping[str, ModelFacts],
    *,
    limit: EngineLimits | None,
) -> Mapping[str, int]:
    """The most tokens of each role's key-value cache, where draft and target share a GPU; else empty.

    Both hold the same requests, so both get the same number, and what they take together fits whatever loads first.
    Where the memory is not known, it is what the engines' limits can use.

    Args:
        limit: What the engines are built to take; None on other backends, which share no GPU in this way.
    """
    if limit is None or not resolution.placement.shared:
        return {}
    memory = gpu_memory(spec, resolution)
    tokens = limit.batch * limit.sequence_length
    if memory is not None:
        devices = _devices(spec, resolution, facts, batch=limit.batch, memory=memory)
        shared = [device for device in devices if len(device.shares) > 1]
        tokens = min(_room(spec, resolution, device) // max(1, device.token) for device in shared)
    blocks = max(1, tokens // _BLOCK_TOKENS) * _BLOCK_TOKENS
    return {
        model.role: min(blocks, _cache(spec, model.role).max_tokens or blocks) for model in resolution.placement.models
    }


def _devices(
    spec: SpeculativeModelSpec, resolution: Resolution, facts: Mapping[str, ModelFacts], *, batch: int, memory: int
) -> list[_Device]:
    shares = {
        model.role: _share(model.role, spec, resolution, facts, batch=batch) for model in resolution.placement.models
    }
    placed = resolution.placement.models
    numbers = sorted({number for model in placed for number in model.devices})
    return [
        _Device(
            number=number,
            shares={model.role: shares[model.role] for model in placed if number in model.devices},
            memory=memory,
        )
        for number in numbers
    ]


def _share(
    role: str, spec: SpeculativeModelSpec, resolution: Resolution, facts: Mapping[str, ModelFacts], *, batch: int
) -> Share:
    model = (spec.draft if role == "draft" else None) or spec.target
    inside = facts.get("draft") if role == "target" and "draft" not in _placed(resolution) else None
    per_request = resolution.draft_tokens + 1 if role == "target" else 1
    engine = resolution.backend == "TensorRTEngine"
    parallelism = parallelism_of(role, spec) if role in engine_roles(spec) else spec.target.parallelism
    return share_of(
        facts[role], model, parallelism=parallelism, rows=batch * per_request, windowed=not engine, head=inside
    )


def _placed(resolution: Resolution) -> set[str]:
    return {model.role for model in resolution.placement.models}


def _cache(spec: SpeculativeModelSpec, role: str) -> KvCache:
    own = spec.serving.draft_kv_cache if role == "draft" else None
    return own or spec.serving.kv_cache


def _usable(spec: SpeculativeModelSpec, resolution: Resolution, memory: int) -> int:
    """What the server may take of a GPU at all."""
    if resolution.backend != "VLLM":
        return memory
    return memory * (spec.serving.kv_cache.free_gpu_memory_percent or _VLLM_PERCENT) // _WHOLE


def _room(spec: SpeculativeModelSpec, resolution: Resolution, device: _Device) -> int:
    """Bytes for the caches on a GPU."""
    free = max(0, _usable(spec, resolution, device.memory) - device.needed)
    if resolution.backend == "VLLM":
        return free
    percents = [_cache(spec, role).free_gpu_memory_percent or _CACHE_PERCENT for role in device.shares]
    return free * min(percents) // _WHOLE


def _request_tokens(spec: SpeculativeModelSpec, resolution: Resolution, facts: Mapping[str, ModelFacts]) -> int:
    """The length of one request that must fit, where no engine is built for one."""
    context = min(fact.context_length for fact in facts.values())
    usual = min(_USUAL_TOKENS, context) if resolution.backend == "LLMAPI" else context
    return min(spec.serving.max_sequence_length or usual, spec.serving.max_attention_window or _ENDLESS)


def _small_caches(spec: SpeculativeModelSpec, limit: EngineLimits) -> list[Refusal]:
    """Declared bounds below one request: it would wait for blocks that the cache does not have."""
    declared = spec.engine is not None and spec.engine.max_sequence_length is not None
    judged = [role for role in engine_roles(spec) if declared or not is_prebuilt(role, spec)]
    bounds = {
        "draftKvCache" if role == "draft" and spec.serving.draft_kv_cache else "kvCache": _cache(spec, role).max_tokens
        for role in judged
    }
    length = min(limit.sequence_length, spec.serving.max_attention_window or _ENDLESS)
    return [
        Refusal(
            reason="CacheTooSmall",
            path=f"spec.serving.{field}.maxTokens",
            message=f"a cache of {asked} tokens holds no request of {length}, drafted tokens included: raise it to "
            f"{length}, or lower engine.maxSequenceLength",
        )
        for field, asked in bounds.items()
        if asked is not None and asked < length
    ]


def _too_small(spec: SpeculativeModelSpec, resolution: Resolution, device: _Device, *, usable: int) -> Refusal:
    parts = " and ".join(
        f"the {role} {_gib(share.weights)} of weights and about {_gib(share.working)} to run"
        for role, share in device.shares.items()
    )
    field = "memory" if spec.placement.gpu.memory else "product"
    return Refusal(
        reason="GpuMemoryTooSmall",
        path=f"spec.placement.gpu.{field}",
        message=f"{parts} need {_gib(device.needed)} on GPU {device.number}, and {_name(spec, resolution)} has "
        f"{_gib(usable)} for them: {', '.join(_remedies(spec, resolution, device))}, or name GPUs with more memory",
    )


def _too_long(
    spec: SpeculativeModelSpec, resolution: Resolution, device: _Device, *, tokens: int, room: int
) -> Refusal:
    part = "engine" if resolution.backend == "TensorRTEngine" else "serving"
    return Refusal(
        reason="GpuMemoryTooSmall",
        path=f"spec.{part}.maxSequenceLength",
        message=f"one request of {tokens} tokens takes {_gib(tokens * device.token)} of cache on GPU {device.number}, "
        f"and weights and runtime leave {_gib(room)} of {_name(spec, resolution)} for it: lower "
        f"{part}.maxSequenceLength, {', '.join(_remedies(spec, resolution, device))}, or name GPUs with more memory",
    )


def _remedies(spec: SpeculativeModelSpec, resolution: Resolution, device: _Device) -> list[str]:
    remedies = [f"raise {role}.parallelism.tensor (now {_tensor(spec, role)})" for role in device.shares]
    if len(device.shares) > 1:
        remedies.append("give each model devices of its own")
    if resolution.backend == "TensorRTEngine":
        unquantized = [role for role in device.shares if _is_unquantized(spec, role)]
        remedies += [f"give {role}.quantization a format of fewer bits" for role in unquantized]
        return [*remedies, "lower engine.maxBatchSize"]
    return [*remedies, "name a model published in fewer bits"]


def _tensor(spec: SpeculativeModelSpec, role: str) -> int:
    return parallelism_of(role, spec).tensor


def _is_unquantized(spec: SpeculativeModelSpec, role: str) -> bool:
    model = spec.draft if role == "draft" else spec.target
    return model is not None and model.quantization is None


def _name(spec: SpeculativeModelSpec, resolution: Resolution) -> str:
    if spec.placement.gpu.memory:
        return f"a GPU of {spec.placement.gpu.memory}"
    return resolution.gpu_product or spec.placement.gpu.resource_name or "the GPU"


def _gib(number_of_bytes: int) -> str:
    return f"{number_of_bytes / _GIB:.1f} GiB"

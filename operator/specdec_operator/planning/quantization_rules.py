"""Number formats that a backend, release, method or GPU can't do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specdec_operator.api.v1alpha1.speculative_model import default_backend
from specdec_operator.planning.engine_limits import engine_roles
from specdec_operator.planning.refusal import Refusal
from specdec_operator.runtimes.engine_builds import engine_builds
from specdec_operator.runtimes.gpus import capability, compute_capability

if TYPE_CHECKING:
    from specdec_operator.api.v1alpha1.quantization import Quantization
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModelSpec
    from specdec_operator.planning.resolution import Resolution
    from specdec_operator.runtimes.gpus import Capability

_FP8_CACHE = capability("8.9")


def quantization_refusals(spec: SpeculativeModelSpec, resolution: Resolution) -> list[Refusal]:
    """Everything that is wrong with the formats of target and draft."""
    models = {"target": spec.target, **({"draft": spec.draft} if spec.draft else {})}
    asked = {role: model.quantization for role, model in models.items() if model.quantization}
    found: list[Refusal] = []
    for role, quantization in asked.items():
        outside = _outside(role, spec)
        found += outside or [
            *_release(role, quantization, resolution),
            *_method(role, quantization, spec),
            *_gpu(role, quantization, resolution),
            *_cache(role, quantization, spec),
        ]
    return found


def _refusal(role: str, field: str, message: str, *, reason: str = "QuantizationUnsupported") -> Refusal:
    return Refusal(reason=reason, path=f"spec.{role}.quantization{field}", message=message)


def _outside(role: str, spec: SpeculativeModelSpec) -> list[Refusal]:
    backend = default_backend(spec)
    if backend != "TensorRTEngine":
        message = f"models are quantized for engines only; on {backend}, name a model that is published quantized"
        return [_refusal(role, "", message)]
    if role not in engine_roles(spec):
        return [_refusal(role, "", "a head is built into its target's engine: use spec.target.quantization")]
    return []


def _release(role: str, quantization: Quantization, resolution: Resolution) -> list[Refusal]:
    support = resolution.release.tensorrt_engine
    known = support.quantization_formats if support else []
    if quantization.format in known:
        return []
    message = f"release {resolution.release.name} makes {', '.join(known)}, not {quantization.format}"
    return [_refusal(role, ".format", f"{message}: choose one of these, or another runtime.release")]


def _method(role: str, quantization: Quantization, spec: SpeculativeModelSpec) -> list[Refusal]:
    method = spec.speculation.method
    build = engine_builds().methods.get(method)
    taken = build.formats if build and role == "target" else None
    if taken is None or quantization.format in taken:
        return []
    message = f"{method} engines are built in {', '.join(taken)} or the model's own precision, not in "
    return [_refusal(role, ".format", f"{message}{quantization.format}: choose one of these, or remove quantization")]


def _gpu(role: str, quantization: Quantization, resolution: Resolution) -> list[Refusal]:
    found = compute_capability(resolution.gpu_product or "")
    if found is None:
        return []
    least = engine_builds().formats[quantization.format].minimum_capability
    cache = _FP8_CACHE if quantization.key_value_cache_data_type == "FP8" else None
    product = f"{resolution.gpu_product} has {_dotted(found)}"
    refusals = []
    if least and found < least:
        message = f"{quantization.format} needs GPUs of compute capability {_dotted(least)}, {product}: choose another"
        refusals.append(_refusal(role, ".format", message, reason="GpuTooOld"))
    if cache and found < cache:
        message = f"an FP8 cache needs GPUs of compute capability {_dotted(cache)}, {product}: remove it"
        refusals.append(_refusal(role, ".keyValueCacheDataType", message, reason="GpuTooOld"))
    return refusals


def _cache(role: str, quantization: Quantization, spec: SpeculativeModelSpec) -> list[Refusal]:
    cache = quantization.key_value_cache_data_type
    if cache is None:
        return []
    if not engine_builds().formats[quantization.format].quantizer:
        message = "weight-only formats keep the model's own cache: remove it, or choose a format that is calibrated"
        return [_refusal(role, ".keyValueCacheDataType", message)]
    reuse = spec.serving.kv_cache.reuse
    if cache == "INT8" and (reuse or spec.speculation.method != "None"):
        message = (
            "attention over a paged context, which drafting and serving.kvCache.reuse need, reads no INT8 cache: use "
            "FP8, or the method None with reuse false"
        )
        return [_refusal(role, ".keyValueCacheDataType", message)]
    return []


def _dotted(found: Capability) -> str:
    return f"{found[0]}.{found[1]}"

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
_WITHOUT_INTEGERS = (10, 11)
"""Major compute capabilities of data-centre Blackwell."""


def quantization_refusals(spec: SpeculativeModelSpec, resolution: Resolution) -> list[Refusal]:
    """Everything that is wrong with the formats of target and draft."""
    models = {"target": spec.target, **({"draft": spec.draft} if spec.draft else {})}
    asked = {role: model.quantization for role, model in models.items() if model.quantization}
    found: list[Refusal] = []
    for role, quantization in asked.items():
        outside = _outside(role, spec)
        found += outside or [
            *_release(role, quantization, resolution),
            *_method(role, quantization, spec, resolution),
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


def _method(role: str, quantization: Quantization, spec: SpeculativeModelSpec, resolution: Resolution) -> list[Refusal]:
    method = spec.speculation.method
    support, build = resolution.release.tensorrt_engine, engine_builds().methods.get(method)
    if method == "ReDrafter" and support and support.re_drafter_base == "Model":
        message = (
            f"release {resolution.release.name} converts a ReDrafter target in its own precision alone: remove "
            "quantization, or name a release with TensorRT-LLM 1.0 or newer in runtime.release"
        )
        return [_refusal(role, ".format", message)]
    taken = build.formats if build and role == "target" else None
    if taken is None or quantization.format in taken:
        return []
    message = f"{method} engines are built in {', '.join(taken)} or the model's own precision, not in "
    return [_refusal(role, ".format", f"{message}{quantization.format}: choose one of these, or remove quantization")]


def _gpu(role: str, quantization: Quantization, resolution: Resolution) -> list[Refusal]:
    found = compute_capability(resolution.gpu_product or "")
    if found is None:
        return []
    form, cache = engine_builds().formats[quantization.format], quantization.key_value_cache_data_type
    product = f"{resolution.gpu_product} has {_dotted(found)}"
    refusals = []
    if form.minimum_capability and found < form.minimum_capability:
        least = _dotted(form.minimum_capability)
        message = f"{quantization.format} needs GPUs of compute capability {least}, {product}: choose another"
        refusals.append(_refusal(role, ".format", message, reason="GpuTooOld"))
    if cache == "FP8" and found < _FP8_CACHE:
        message = f"an FP8 cache needs GPUs of compute capability {_dotted(_FP8_CACHE)}, {product}: remove it"
        refusals.append(_refusal(role, ".keyValueCacheDataType", message, reason="GpuTooOld"))
    if found[0] in _WITHOUT_INTEGERS and form.integers:
        message = f"trtllm-build makes no {quantization.format} engines for compute capability 10 and 11, {product}: "
        refusals.append(_refusal(role, ".format", f"{message}choose FP8 or NVFP4, or other GPUs"))
    elif found[0] in _WITHOUT_INTEGERS and cache == "INT8":
        message = f"trtllm-build makes no INT8 cache for compute capability 10 and 11, {product}: use FP8, or remove it"
        refusals.append(_refusal(role, ".keyValueCacheDataType", message))
    return refusals


def _cache(role: str, quantization: Quantization, spec: SpeculativeModelSpec) -> list[Refusal]:
    cache, formats = quantization.key_value_cache_data_type, engine_builds().formats
    if cache is None:
        return []
    if not formats[quantization.format].quantizer:
        message = "weight-only formats keep the model's own cache: remove it, or choose a format that is calibrated"
        return [_refusal(role, ".keyValueCacheDataType", message)]
    needed = [field for field, needs in _needs_pages(spec).items() if needs]
    if not needed or formats[quantization.format].pages(cache):
        return []
    pages = ", ".join(name for name, form in formats.items() if form.pages("FP8"))
    message = (
        f"{' and '.join(needed)} {'need' if len(needed) > 1 else 'needs'} attention over a paged context, which reads "
        f"no {cache} cache in {quantization.format} engines, only an FP8 cache in {pages}: use one of these, remove "
        "keyValueCacheDataType, or use the method None with serving.kvCache.reuse false and without "
        "serving.chunkedContext"
    )
    return [_refusal(role, ".keyValueCacheDataType", message)]


def _needs_pages(spec: SpeculativeModelSpec) -> dict[str, bool]:
    """What needs attention over a paged context, and whether it is asked for."""
    serving, method = spec.serving, spec.speculation.method
    return {
        f"speculation.method {method}": method != "None",
        "serving.kvCache.reuse": serving.kv_cache.reuse,
        "serving.chunkedContext": bool(serving.chunked_context),
    }


def _dotted(found: Capability) -> str:
    return f"{found[0]}.{found[1]}"

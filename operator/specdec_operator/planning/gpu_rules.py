"""GPUs that are too old for what a release or a method runs on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specdec_operator.planning.refusal import Refusal
from specdec_operator.runtimes.engine_builds import engine_builds
from specdec_operator.runtimes.gpus import capability, compute_capability

if TYPE_CHECKING:
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModelSpec
    from specdec_operator.planning.resolution import Resolution
    from specdec_operator.runtimes.gpus import Capability


def gpu_refusals(spec: SpeculativeModelSpec, resolution: Resolution) -> list[Refusal]:
    """A known product below the floor of the release's backend, or else of the method's engines.

    Nothing is refused where the product or the floor is not known.
    """
    found = compute_capability(resolution.gpu_product or "")
    if found is None:
        return []
    return _release(resolution, found) or _method(spec, resolution, found)


def _release(resolution: Resolution, found: Capability) -> list[Refusal]:
    support = resolution.release.support(resolution.backend)
    least = support.minimum_compute_capability if support else None
    if least is None or found >= capability(least):
        return []
    message = (
        f"{resolution.backend} of release {resolution.release.name} runs on compute capability {least} and newer, "
        f"{_product(resolution, found)}: name newer GPUs, or another backend or release"
    )
    return [_too_old(message)]


def _method(spec: SpeculativeModelSpec, resolution: Resolution, found: Capability) -> list[Refusal]:
    method = spec.speculation.method
    build = engine_builds().methods.get(method) if resolution.backend == "TensorRTEngine" else None
    least = build.minimum_capability if build else None
    if least is None or found >= least:
        return []
    message = (
        f"{method} engines need compute capability {least[0]}.{least[1]}, {_product(resolution, found)}: name newer "
        "GPUs, or use another method"
    )
    return [_too_old(message)]


def _product(resolution: Resolution, found: Capability) -> str:
    return f"{resolution.gpu_product} has {found[0]}.{found[1]}"


def _too_old(message: str) -> Refusal:
    return Refusal(reason="GpuTooOld", path="spec.placement.gpu.product", message=message)

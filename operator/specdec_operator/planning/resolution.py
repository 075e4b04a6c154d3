"""The first pure step: fill in what a spec leaves open, or refuse what no release can do.

What is resolved from something that may change (the capability table, the configuration) becomes a pin, which is kept
until the spec fields that govern it change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from specdec_operator.api.v1alpha1.runtime import RuntimeImage
from specdec_operator.api.v1alpha1.speculative_model import default_backend
from specdec_operator.api.v1alpha1.status import Pin
from specdec_operator.planning.keys import content_key
from specdec_operator.planning.placement import PodPlacement, place
from specdec_operator.planning.refusal import Refusal, Refused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from specdec_operator.api.configuration import OperatorConfiguration
    from specdec_operator.api.v1alpha1.runtime import Backend
    from specdec_operator.api.v1alpha1.speculation import Method
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModelSpec
    from specdec_operator.api.v1alpha1.storage import Storage
    from specdec_operator.runtimes.table import CapabilityTable, Release

RELEASE_PIN = "runtime.release"
_DEFAULT_DRAFT_TOKENS: Mapping[Method, int] = {
    "Eagle": 63,
    "Eagle2": 0,
    "Eagle3": 3,
    "Medusa": 63,
    "DraftTarget": 10,
    "NGram": 4,
    "Lookahead": 0,
    "ReDrafter": 0,
    "MTP": 1,
    "None": 0,
}


@dataclass(frozen=True, kw_only=True)
class Resolution:
    """A spec with nothing left open but the models' facts.

    Attributes:
        draft_tokens: The most tokens drafted per step; 0 without speculation.
        gpu_product: The node label of builds and serving, or None for any GPU.
        storage: The store, or None if nothing is downloaded or built.
        pins: What the spec left open, with the reason.
    """

    backend: Backend
    release: Release
    image: RuntimeImage
    draft_tokens: int
    gpu_product: str | None
    storage: Storage | None
    placement: PodPlacement
    pins: tuple[Pin, ...]

    @property
    def store_claim(self) -> str | None:
        """The name of the store's claim."""
        if self.storage is None:
            return None
        return self.storage.claim.claim_name if self.storage.claim else self.storage.claim_name


def resolve(
    spec: SpeculativeModelSpec,
    *,
    table: CapabilityTable,
    configuration: OperatorConfiguration,
    pins: Sequence[Pin] = (),
    refresh: str = "",
) -> Resolution:
    """Fill in a spec.

    Args:
        pins: What was resolved before.
        refresh: The value of the annotation `specdec.dev/refresh`; a new one asks for everything anew.

    Raises:
        Refused: A release, backend, GPU product or store is missing or can't do what is asked.
    """
    backend = default_backend(spec)
    kept = _kept(spec, backend, table=table, pins=pins, refresh=refresh)
    release, pin = kept or _release(spec, backend, table=table, configuration=configuration, refresh=refresh)
    product = spec.placement.gpu.product or configuration.gpu_product
    storage = (spec.storage or configuration.storage) if needs_store(spec, backend) else None
    refusals = [
        *([release] if isinstance(release, Refusal) else _capability(spec, backend, release, table, kept=bool(kept))),
        *_gpu_product(backend, product),
        *_storage(spec, backend, storage),
    ]
    if refusals or isinstance(release, Refusal):
        raise Refused(tuple(refusals))
    tokens = spec.speculation.max_draft_tokens
    return Resolution(
        backend=backend,
        release=release,
        image=spec.runtime.image or RuntimeImage(reference=release.image_for(backend)),
        draft_tokens=_DEFAULT_DRAFT_TOKENS[spec.speculation.method] if tokens is None else tokens,
        gpu_product=product,
        storage=storage,
        placement=place(spec, backend),
        pins=(pin,) if pin else (),
    )


def needs_store(spec: SpeculativeModelSpec, backend: Backend) -> bool:
    """Whether anything is downloaded or built."""
    models = [spec.target] + ([spec.draft] if spec.draft else [])
    return backend == "TensorRTEngine" or any(model.source.hugging_face for model in models)


def _kept(
    spec: SpeculativeModelSpec, backend: Backend, *, table: CapabilityTable, pins: Sequence[Pin], refresh: str
) -> tuple[Release, Pin] | None:
    """The release that was resolved before, while what governed the choice is unchanged."""
    governed_by = _governed_by(spec, backend, refresh)
    pin = next((pin for pin in pins if pin.name == RELEASE_PIN and pin.governed_by == governed_by), None)
    found = table.find(pin.value) if pin and spec.runtime.release is None else None
    if pin is None or found is None or spec.speculation.method not in found.methods(backend):
        return None
    return found, pin


def _governed_by(spec: SpeculativeModelSpec, backend: Backend, refresh: str) -> str:
    image = spec.runtime.image.reference if spec.runtime.image else ""
    return content_key({"backend": backend, "method": spec.speculation.method, "image": image, "refresh": refresh})


def _release(
    spec: SpeculativeModelSpec,
    backend: Backend,
    *,
    table: CapabilityTable,
    configuration: OperatorConfiguration,
    refresh: str,
) -> tuple[Release | Refusal, Pin | None]:
    if spec.runtime.release is not None:
        found = table.find(spec.runtime.release)
        return (found or _unknown_release(spec.runtime.release, table), None)
    method = spec.speculation.method
    chosen = _configured(backend, configuration)
    release = table.find(chosen) if chosen else table.default(backend, method)
    if release is None:
        if chosen:
            return _unknown_release(chosen, table), None
        return _no_release(backend, method), None
    reason = (
        "the operator's default for this backend"
        if chosen
        else "the newest release without a known blocking defect for this backend and method"
    )
    return release, Pin(
        name=RELEASE_PIN, value=release.name, reason=reason, governed_by=_governed_by(spec, backend, refresh)
    )


def _configured(backend: Backend, configuration: OperatorConfiguration) -> str | None:
    return configuration.default_releases.of(backend)


def _unknown_release(name: str, table: CapabilityTable) -> Refusal:
    known = ", ".join(release.name for release in table.releases)
    return Refusal(
        reason="ReleaseUnknown",
        path="spec.runtime.release",
        message=f"{name} is in no row of the capability table; known: {known}. Name one of them or add a row to the "
        "operator's configuration (releases)",
    )


def _no_release(backend: Backend, method: str) -> Refusal:
    return Refusal(
        reason="MethodNotInRelease",
        path="spec.speculation.method",
        message=f"no known release serves {method} on {backend}",
    )


def _capability(
    spec: SpeculativeModelSpec, backend: Backend, release: Release, table: CapabilityTable, *, kept: bool
) -> list[Refusal]:
    method = spec.speculation.method
    if method not in release.methods(backend):
        others = ", ".join(table.with_method(backend, method)) or "none"
        return [
            Refusal(
                reason="MethodNotInRelease",
                path="spec.runtime.release",
                message=f"{release.name} does not serve {method} on {backend}; releases that do: {others}",
            )
        ]
    defect = release.blocking_defect(backend, method)
    # A defect that became known later stops no model that serves already.
    if defect and spec.runtime.image is None and not kept:
        return [
            Refusal(
                reason="ReleaseDefect",
                path="spec.runtime.release",
                message=f"the stock image of {release.name} can't serve {backend} ({defect.id}): {defect.remedy}; "
                "or leave runtime.release out",
            )
        ]
    return []


def _gpu_product(backend: Backend, product: str | None) -> list[Refusal]:
    if backend == "LLMAPI" or product:
        return []
    return [
        Refusal(
            reason="GpuProductRequired",
            path="spec.placement.gpu.product",
            message="engines are bound to a GPU product: name the node label nvidia.com/gpu.product of the GPUs to use "
            "(kubectl get nodes -L nvidia.com/gpu.product lists them)",
        )
    ]


def _storage(spec: SpeculativeModelSpec, backend: Backend, storage: Storage | None) -> list[Refusal]:
    if storage is not None or not needs_store(spec, backend):
        return []
    return [
        Refusal(
            reason="StorageRequired",
            path="spec.storage",
            message="models are downloaded and engines built into a store, and the operator has no default: give "
            "storage.claimName, or storage.claim with a size",
        )
    ]

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
from specdec_operator.planning import capability, speculation_rules
from specdec_operator.planning.choices import tree_of
from specdec_operator.planning.draft_length import draft_tokens
from specdec_operator.planning.drivers import known_drivers
from specdec_operator.planning.engine_limits import engine_roles
from specdec_operator.planning.engine_rules import is_prebuilt
from specdec_operator.planning.keys import content_key
from specdec_operator.planning.placement import PodPlacement, place
from specdec_operator.planning.pods import job_settings
from specdec_operator.planning.refusal import Refusal, Refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specdec_operator.api.configuration import OperatorConfiguration
    from specdec_operator.api.v1alpha1.runtime import Backend
    from specdec_operator.api.v1alpha1.speculation import Method
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModelSpec
    from specdec_operator.api.v1alpha1.storage import Storage
    from specdec_operator.planning.choices import Tree
    from specdec_operator.planning.drivers import Drivers, NodeLabels
    from specdec_operator.planning.pods import JobSettings
    from specdec_operator.pod.driver import DriverFloor
    from specdec_operator.runtimes.table import CapabilityTable, Release

RELEASE_PIN = "runtime.release"


@dataclass(frozen=True, kw_only=True)
class Resolution:
    """A spec with nothing left open but the models' facts.

    Attributes:
        draft_tokens: The most tokens drafted per step; 0 without speculation.
        tree: Every node of the draft tree that the spec declares; None for the backend's own, or without one.
        gpu_product: The node label of builds and serving, or None for any GPU.
        storage: The store, or None if nothing is downloaded or built.
        jobs: How every Job of the model runs.
        driver_floor: The NVIDIA drivers that run the image.
        pins: What the spec left open, with the reason.
        stock_image: Whether the image is a shipped row's, whose content is known by its TensorRT-LLM.
    """

    backend: Backend
    release: Release
    image: RuntimeImage
    draft_tokens: int
    tree: Tree | None
    gpu_product: str | None
    storage: Storage | None
    placement: PodPlacement
    jobs: JobSettings
    pins: tuple[Pin, ...]
    driver_floor: DriverFloor
    stock_image: bool = False

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
    nodes: Sequence[NodeLabels] = (),
) -> Resolution:
    """Fill in a spec.

    Args:
        pins: What was resolved before.
        refresh: The value of the annotation `specdec.dev/refresh`; a new one asks for everything anew.
        nodes: The labels of the GPU nodes; empty where they are not read.

    Raises:
        Refused: A release, backend, GPU product or store is missing or can't do what is asked.
    """
    backend = default_backend(spec)
    product = spec.placement.gpu.product or configuration.gpu_product
    drivers = known_drivers(spec, backend, product=product, configuration=configuration, nodes=nodes)
    kept = _kept(spec, backend, table=table, pins=pins, refresh=refresh)
    release, pin = kept or _release(spec, backend, table=table, drivers=drivers, refresh=refresh)
    storage = (spec.storage or configuration.storage) if needs_store(spec, backend) else None
    refusals = [
        *(
            _release_refusals(spec, backend, release, table=table, drivers=None if kept else drivers)
            if release
            else _without_release(spec, backend, table=table, drivers=drivers)
        ),
        *_gpu_product(backend, product),
        *_storage(spec, backend, storage),
    ]
    if refusals or release is None:
        raise Refused(tuple(refusals))
    image = spec.runtime.image or RuntimeImage(reference=release.image_for(backend))
    tree = tree_of(spec)
    return Resolution(
        backend=backend,
        release=release,
        image=image,
        draft_tokens=draft_tokens(spec, usual=table.words.of(spec.speculation.method, backend).draft_tokens, tree=tree),
        tree=tree,
        gpu_product=product,
        storage=storage,
        placement=place(spec, backend),
        jobs=job_settings(spec, image=image, gpu_product=product),
        pins=(pin,) if pin else (),
        driver_floor=drivers.floor(release),
        stock_image=table.is_stock(image.reference, release.tensorrt_llm),
    )


def needs_store(spec: SpeculativeModelSpec, backend: Backend) -> bool:
    """Whether anything is downloaded or built."""
    models = [spec.target] + ([spec.draft] if spec.draft else [])
    builds = backend == "TensorRTEngine" and not all(is_prebuilt(role, spec) for role in engine_roles(spec))
    return builds or any(model.source.hugging_face for model in models)


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
    declared = {"minimumDriver": spec.runtime.minimum_driver} if spec.runtime.minimum_driver else {}
    return content_key(
        {"backend": backend, "method": spec.speculation.method, "image": image, "refresh": refresh, **declared}
    )


def _release(
    spec: SpeculativeModelSpec,
    backend: Backend,
    *,
    table: CapabilityTable,
    drivers: Drivers,
    refresh: str,
) -> tuple[Release | None, Pin | None]:
    """The release, with a pin if the spec names none; no release where none is known or fits."""
    if spec.runtime.release is not None:
        return table.find(spec.runtime.release), None
    method = spec.speculation.method
    chosen = drivers.configuration.default_releases.of(backend)
    release = table.find(chosen) if chosen else _default(backend, method, table=table, drivers=drivers)
    if release is None:
        return None, None
    reason = (
        "the operator's default for this backend"
        if chosen
        else capability.choice(method, backend, release, table=table, drivers=drivers)
    )
    governed_by = _governed_by(spec, backend, refresh)
    return release, Pin(name=RELEASE_PIN, value=release.name, reason=reason, governed_by=governed_by)


def _default(backend: Backend, method: Method, *, table: CapabilityTable, drivers: Drivers) -> Release | None:
    """The newest release that all known drivers run; without one, the newest that some do."""
    everywhere = table.default(backend, method, runs=drivers.run)
    return everywhere or table.default(backend, method, runs=drivers.run_somewhere)


def _release_refusals(
    spec: SpeculativeModelSpec, backend: Backend, release: Release, *, table: CapabilityTable, drivers: Drivers | None
) -> list[Refusal]:
    # What becomes known later, defects or drivers, stops no model that serves already: its release was kept.
    stock = spec.runtime.image is None and drivers is not None
    found = capability.refusals(spec.speculation.method, backend, release, table=table, stock_image=stock)
    found = found or speculation_rules.release_refusals(spec, backend, release)
    return found or (drivers.refusals(release, table=table) if drivers else [])


def _without_release(
    spec: SpeculativeModelSpec, backend: Backend, *, table: CapabilityTable, drivers: Drivers
) -> list[Refusal]:
    """Why there is no release: the named one is in no row, none serves the method, or no driver runs one."""
    method = spec.speculation.method
    named = spec.runtime.release or drivers.configuration.default_releases.of(backend)
    if named is None:
        newest = table.default(backend, method)
        if newest is not None:
            return drivers.refusals(newest, table=table)
        return capability.default_refusals(method, backend, table=table)
    known = ", ".join(release.name for release in table.releases)
    unknown = Refusal(
        reason="ReleaseUnknown",
        path="spec.runtime.release",
        message=f"{named} is in no row of the capability table; known: {known}. Name one of them or add a row to the "
        "operator's configuration (releases)",
    )
    return [unknown, *capability.method_refusals(method, backend, table=table)]


def _gpu_product(backend: Backend, product: str | None) -> list[Refusal]:
    if backend != "TensorRTEngine" or product:
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

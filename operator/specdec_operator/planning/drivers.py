"""Which releases the drivers of the GPU nodes run: nodes' labels tell it, else the operator's configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from specdec_operator.planning.pods import GPU_PRODUCT_LABEL
from specdec_operator.planning.refusal import Refusal
from specdec_operator.pod.driver import DriverFloor, driver_trouble

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from specdec_operator.api.configuration import OperatorConfiguration
    from specdec_operator.api.v1alpha1.runtime import Backend
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModelSpec
    from specdec_operator.runtimes.table import CapabilityTable, Release

    NodeLabels = Mapping[str, str]

_DRIVER: Final = "nvidia.com/cuda.driver-version.full"
_DRIVER_PARTS: Final = ("nvidia.com/cuda.driver.major", "nvidia.com/cuda.driver.minor", "nvidia.com/cuda.driver.rev")
"""What GPU feature discovery says of a node's driver; older ones tell it in parts alone."""


@dataclass(frozen=True, kw_only=True)
class NodeDriver:
    """A driver on which a model's pods may come to run.

    Attributes:
        version: The driver's.
        product: The GPU's label; empty if it is not known.
    """

    version: str
    product: str


@dataclass(frozen=True, kw_only=True)
class Drivers:
    """What is known of the drivers on which a model's pods may come to run.

    Attributes:
        found: Each once, oldest first; empty if nothing is known.
        told_by: Who says so.
        others: Whether pods may run on nodes that tell no driver, too.
    """

    spec: SpeculativeModelSpec
    backend: Backend
    configuration: OperatorConfiguration
    found: tuple[NodeDriver, ...]
    told_by: str
    others: bool

    def floor(self, release: Release) -> DriverFloor:
        """The drivers that run a release, or those that spec or configuration declare to."""
        if declared := self.spec.runtime.minimum_driver:
            return DriverFloor(minimum=declared, source="spec.runtime.minimumDriver")
        if declared := self.configuration.minimum_driver:
            return DriverFloor(minimum=declared, source="minimumDriver of the operator's configuration")
        return release.driver_floor(self.backend)

    def run(self, release: Release) -> bool:
        """Whether no known driver is too old for a release."""
        return not any(self._troubles(release))

    def run_somewhere(self, release: Release) -> bool:
        """Whether a node has a driver that runs a release, as far as is known."""
        troubles = self._troubles(release)
        return self.others or not troubles or not all(troubles)

    def refusals(self, release: Release, *, table: CapabilityTable) -> list[Refusal]:
        """A release that no known driver runs: the pods would find no node to serve on."""
        if self.run_somewhere(release):
            return []
        method = self.spec.speculation.method
        older = table.spans(lambda other: method in other.methods(self.backend) and self.run_somewhere(other))
        instead = f"name a release that it runs ({older})" if older else "no release that it runs serves the method"
        message = (
            f"release {release.name} does not run on the GPU nodes: {self._troubles(release)[-1]}. The driver is that "
            f"of {self.told_by}. Install a newer one; {instead}; or, if you know that this driver runs the image, say "
            "so in runtime.minimumDriver"
        )
        return [Refusal(reason="DriverTooOld", path="spec.runtime.release", message=message)]

    def told(self) -> str:
        """The known drivers in words; empty if none is known."""
        if not self.found:
            return ""
        versions = list(dict.fromkeys(driver.version for driver in self.found))
        shown = versions[0] if len(versions) == 1 else f"{versions[0]} to {versions[-1]}"
        return f"driver {shown} of {self.told_by}"

    def _troubles(self, release: Release) -> list[str]:
        floor = self.floor(release)
        return [driver_trouble(floor, driver=driver.version, product=driver.product) for driver in self.found]


def known_drivers(
    spec: SpeculativeModelSpec,
    backend: Backend,
    *,
    product: str | None,
    configuration: OperatorConfiguration,
    nodes: Sequence[NodeLabels] = (),
) -> Drivers:
    """The drivers of the nodes that a model's pods may be scheduled to.

    Args:
        product: The node label of the GPUs, or None for any.
        nodes: The labels of the GPU nodes; empty where they are not read.
    """
    selector = {**spec.pod.node_selector, **({GPU_PRODUCT_LABEL: product} if product else {})}
    matching = [labels for labels in nodes if selector.items() <= labels.items()]
    found = [
        NodeDriver(version=version, product=labels.get(GPU_PRODUCT_LABEL, ""))
        for labels in matching
        if (version := _version(labels))
    ]
    others = 0 < len(found) < len(matching)
    told_by = f"the labels of {len(found)} GPU node{'s' if len(found) > 1 else ''}"
    if not found and configuration.gpu_driver:
        found = [NodeDriver(version=configuration.gpu_driver, product=product or "")]
        told_by = "the operator's configuration (gpuDriver)"
    ordered = sorted(set(found), key=lambda driver: ([int(part) for part in driver.version.split(".")], driver.product))
    return Drivers(
        spec=spec,
        backend=backend,
        configuration=configuration,
        found=tuple(ordered),
        told_by=told_by,
        others=others,
    )


def _version(labels: NodeLabels) -> str:
    told = labels.get(_DRIVER) or ".".join(part for key in _DRIVER_PARTS if (part := labels.get(key, "")))
    return told if all(part.isdecimal() for part in told.split(".")) else ""

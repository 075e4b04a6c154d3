"""The GPUs that a container of the image believes to have; there is no device plugin, so the environment says it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from testbed.runtime.simulator.errors import NoGPUError

if TYPE_CHECKING:
    from collections.abc import Mapping

_DEFAULT_DRIVER: Final = "580.105.08"
_DEFAULT_PRODUCT: Final = "NVIDIA H100 80GB HBM3"
_NONE: Final = ("", "void", "none")


@dataclass(frozen=True)
class _Product:
    memory_mebibytes: int
    compute_capability: str


_PRODUCTS: Final[Mapping[str, _Product]] = {
    "NVIDIA H100 80GB HBM3": _Product(81559, "9.0"),
    "NVIDIA H200": _Product(143771, "9.0"),
    "NVIDIA A100-SXM4-80GB": _Product(81920, "8.0"),
    "NVIDIA L40S": _Product(46068, "8.9"),
    "NVIDIA B200": _Product(183359, "10.0"),
}


@dataclass(frozen=True)
class SimulatedGPU:
    """One GPU that is not there.

    Attributes:
        index: its number in the container's host.
        product: name as nvidia-smi prints it.
        memory_mebibytes: what such a product has; nothing is ever allocated.
        compute_capability: such as `9.0`.
    """

    index: int
    product: str
    memory_mebibytes: int
    compute_capability: str

    @property
    def uuid(self) -> str:
        """A stable made-up identity."""
        return f"GPU-51000000-0000-0000-0000-{self.index:012d}"


def visible_gpus(environment: Mapping[str, str]) -> tuple[SimulatedGPU, ...]:
    """Return the GPUs that `NVIDIA_VISIBLE_DEVICES` shows, of the `SIMULATOR_GPUS` that the host is said to have.

    Raises:
        NoGPUError: a shown device doesn't exist, as the container runtime would refuse it.
    """
    shown = environment.get("NVIDIA_VISIBLE_DEVICES", "").strip()
    if shown.lower() in _NONE:
        return ()
    host = _host_gpus(environment)
    if shown == "all":
        return host
    by_name = {str(gpu.index): gpu for gpu in host} | {gpu.uuid: gpu for gpu in host}
    unknown = [name for name in shown.split(",") if name not in by_name]
    if unknown:
        raise NoGPUError(f"NVIDIA_VISIBLE_DEVICES: unknown device {unknown[0]}; SIMULATOR_GPUS says {len(host)}")
    return tuple(by_name[name] for name in shown.split(","))


def driver_version(environment: Mapping[str, str]) -> str:
    """Return the driver that the host is said to have."""
    return environment.get("SIMULATOR_DRIVER", _DEFAULT_DRIVER)


def require_gpus(environment: Mapping[str, str], *, program: str) -> tuple[SimulatedGPU, ...]:
    """Return the visible GPUs.

    Raises:
        NoGPUError: there is none; `program` is named.
    """
    gpus = visible_gpus(environment)
    if not gpus:
        raise NoGPUError(f"{program}: no CUDA-capable device is detected (NVIDIA_VISIBLE_DEVICES shows none)")
    return gpus


def _host_gpus(environment: Mapping[str, str]) -> tuple[SimulatedGPU, ...]:
    name = environment.get("SIMULATOR_GPU_PRODUCT", _DEFAULT_PRODUCT)
    product = _PRODUCTS.get(name, _PRODUCTS[_DEFAULT_PRODUCT])
    count = int(environment.get("SIMULATOR_GPUS", "8"))
    return tuple(
        SimulatedGPU(index, name, product.memory_mebibytes, product.compute_capability) for index in range(count)
    )

"""The GPUs that a container sees, by nvidia-smi."""

import re
import subprocess
from dataclasses import dataclass

from specdec_operator.pod.driver import DriverFloor, driver_trouble
from specdec_operator.pod.errors import ProgramFailure

_QUERY = ("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader")
_LIST = ("nvidia-smi", "-L")
_TIMEOUT_SECONDS = 60


@dataclass(frozen=True)
class Gpus:
    """The GPUs of a container.

    Attributes:
        products: product of each GPU as GPU feature discovery labels it.
        count: devices; MIG devices are counted where there are any.
        driver: driver version.
    """

    products: tuple[str, ...]
    count: int
    driver: str


def read_gpus() -> Gpus:
    """Ask nvidia-smi.

    Raises:
        ProgramFailure: GpuMissing, there is no GPU or no nvidia-smi.
    """
    rows = [line.rpartition(",") for line in _output(_QUERY).splitlines() if "," in line]
    if not rows:
        raise _missing("nvidia-smi lists none")
    listing = _output(_LIST).splitlines()
    slices = sum(1 for line in listing if re.match(r"\s+MIG ", line))
    return Gpus(tuple(product_label(name) for name, _, _ in rows), slices or len(rows), rows[0][2].strip())


def product_label(name: str) -> str:
    """A product name as GPU feature discovery writes it into the label nvidia.com/gpu.product."""
    return "-".join(re.sub(r"[^A-Za-z0-9\-_. ]", "", name).split())


def require_product(gpus: Gpus, wanted: str) -> None:
    """Refuse GPUs of another product; the labels of shared and of MIG devices count as their GPU's.

    Raises:
        ProgramFailure: EngineGpuMismatch.
    """
    for found in gpus.products:
        if wanted not in ("", found, f"{found}-SHARED") and not wanted.startswith(f"{found}-MIG-"):
            raise ProgramFailure(
                "EngineGpuMismatch",
                f"the container has a {found}, the engine is for {wanted}; set spec.placement.gpu.product to the label "
                "nvidia.com/gpu.product of the nodes that serve",
            )


def require_driver(gpus: Gpus, floor: DriverFloor) -> None:
    """Refuse a driver that does not run the image on these GPUs.

    Raises:
        ProgramFailure: DriverTooOld.
    """
    for product in gpus.products:
        if trouble := driver_trouble(floor, driver=gpus.driver, product=product):
            raise ProgramFailure(
                "DriverTooOld",
                f"the node's {trouble}; install a newer driver, name an older release in spec.runtime.release, or, if "
                "you know that this driver runs the image, say so in spec.runtime.minimumDriver",
            )


def _output(command: tuple[str, ...]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _missing(f"{' '.join(command)}: {error}") from error
    if done.returncode != 0:
        raise _missing(
            f"{' '.join(command)} ended with {done.returncode}: {(done.stderr or done.stdout).strip()[-400:]}"
        )
    return done.stdout


def _missing(what: str) -> ProgramFailure:
    return ProgramFailure(
        "GpuMissing",
        f"the container sees no GPU ({what}); check spec.placement.gpu.resourceName, the device plugin and "
        "spec.pod.runtimeClassName",
        terminal=False,
    )

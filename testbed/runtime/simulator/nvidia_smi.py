"""The part of nvidia-smi that scripts read: the device list and the CSV queries."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from testbed.runtime.simulator.gpus import SimulatedGPU, driver_version, visible_gpus

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_NOT_FOUND: Final = 6  # nvidia-smi's exit code when a query finds no object
_BAD_ARGUMENT: Final = 2
_UNITS: Final[Mapping[str, str]] = {"memory.total": " MiB", "memory.free": " MiB", "memory.used": " MiB"}


def nvidia_smi(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Print what was asked for; returns the exit code."""
    gpus = visible_gpus(environment)
    if not gpus:
        print("No devices were found")
        return _NOT_FOUND
    driver = driver_version(environment)
    if not arguments:
        return _overview(gpus, driver=driver)
    if list(arguments) in (["-L"], ["--list-gpus"]):
        for number, gpu in enumerate(gpus):
            print(f"GPU {number}: {gpu.product} (UUID: {gpu.uuid})")
        return 0
    return _query(arguments, gpus, driver=driver)


def _overview(gpus: Sequence[SimulatedGPU], *, driver: str) -> int:
    print(f"NVIDIA-SMI (simulator: no GPU is behind this)  Driver Version: {driver}")
    for number, gpu in enumerate(gpus):
        print(f"| {number}  {gpu.product} | {gpu.memory_mebibytes}MiB |")
    return 0


def _query(arguments: Sequence[str], gpus: Sequence[SimulatedGPU], *, driver: str) -> int:
    options = dict(argument.split("=", 1) for argument in arguments if "=" in argument)
    layout = options.get("--format", "").split(",")
    if "--query-gpu" not in options or layout[0] != "csv":
        print(f"Invalid combination of input arguments: {' '.join(arguments)}", file=sys.stderr)
        return _BAD_ARGUMENT
    fields = [field.strip() for field in options["--query-gpu"].split(",")]
    rows = [{**_values(gpu, number, len(gpus)), "driver_version": driver} for number, gpu in enumerate(gpus)]
    unknown = [field for field in fields if field not in rows[0]]
    if unknown:
        print(f'Field "{unknown[0]}" is not a valid field to query.')
        return _BAD_ARGUMENT
    if "noheader" not in layout:
        print(", ".join(fields))
    for row in rows:
        print(", ".join(row[field] + ("" if "nounits" in layout else _UNITS.get(field, "")) for field in fields))
    return 0


def _values(gpu: SimulatedGPU, number: int, count: int) -> Mapping[str, str]:
    return {
        "index": str(number),
        "count": str(count),
        "name": gpu.product,
        "gpu_name": gpu.product,
        "uuid": gpu.uuid,
        "memory.total": str(gpu.memory_mebibytes),
        "memory.free": str(gpu.memory_mebibytes),
        "memory.used": "0",
        "compute_cap": gpu.compute_capability,
        "mig.mode.current": "Disabled",
    }

"""Check, before the server starts, that the container has what the plan counted on."""

import os
import resource
import sys
from pathlib import Path
from typing import Any

from specdec_operator.pod.content import require_content
from specdec_operator.pod.errors import ProgramFailure
from specdec_operator.pod.gpu import Gpus, read_gpus, require_driver, require_product
from specdec_operator.pod.inputs import CheckInput
from specdec_operator.pod.program import run
from specdec_operator.pod.tensorrt_llm_version import require_tensorrt_llm
from specdec_operator.pod.vllm_version import require_vllm

_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - not a file made here: the shared memory's size is read


def check(given: CheckInput) -> dict[str, Any]:
    """Check GPUs, driver, versions, engines and models; report the limits that only the node decides.

    Returns:
        `gpus`, `driver`, `memlockBytes`, `stackBytes` (hard limits, -1 for none) and `sharedMemoryBytes`.

    Raises:
        ProgramFailure: something isn't as the plan counted on.
    """
    require_tensorrt_llm(given.tensorrt_llm_version)
    require_vllm(given.vllm_version)
    require_content(given)
    gpus = _require_gpus(given)
    return {
        "gpus": list(gpus.products),
        "driver": gpus.driver,
        "memlockBytes": resource.getrlimit(resource.RLIMIT_MEMLOCK)[1],
        "stackBytes": resource.getrlimit(resource.RLIMIT_STACK)[1],
        "sharedMemoryBytes": _shared_memory_bytes(),
    }


def _require_gpus(given: CheckInput) -> Gpus:
    if given.gpus == 0:
        return Gpus((), 0, "")
    gpus = read_gpus()
    if gpus.count < given.gpus:
        raise ProgramFailure(
            "GpuMissing",
            f"the container has {gpus.count} GPUs, the placement needs {given.gpus}; check the device plugin's "
            "resource and its sharing configuration",
            terminal=False,
        )
    require_product(gpus, given.gpu_product)
    require_driver(gpus, given.driver)
    return gpus


def _shared_memory_bytes() -> int:
    try:
        status = os.statvfs(_SHARED_MEMORY)
    except OSError:
        return 0
    return status.f_blocks * status.f_frsize


if __name__ == "__main__":
    sys.exit(run(CheckInput, check))

"""Check, before the server starts, that the container has what the plan counted on."""

import os
import resource
import sys
from pathlib import Path
from typing import Any

from specdec_operator.pod.engine_config import read_engine_config, require_engine
from specdec_operator.pod.engine_fit import require_fit
from specdec_operator.pod.errors import ProgramFailure
from specdec_operator.pod.gpu import Gpus, read_gpus, require_driver, require_product
from specdec_operator.pod.inputs import CheckInput, EngineExpectation
from specdec_operator.pod.manifest import require_whole
from specdec_operator.pod.model_files import MANIFEST_NAME, weight_files
from specdec_operator.pod.prebuilt_engine import require_prebuilt
from specdec_operator.pod.program import run
from specdec_operator.pod.tensorrt_llm_version import require_tensorrt_llm
from specdec_operator.pod.tensors import read_weights
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
    for directory in given.model_directories:
        # with engines, models are mounted for their tokenizers alone
        _require_model(Path(directory), loaded=not given.engines)
    for engine in given.engines:
        _require_engine(engine, given.tensorrt_llm_version)
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


def _require_engine(engine: EngineExpectation, tensorrt_llm_version: str) -> None:
    directory = Path(engine.directory)
    if engine.prebuilt:
        require_prebuilt(directory, ranks=engine.ranks, digest=engine.digest)
    else:
        require_engine(directory, ranks=engine.ranks, digest=engine.digest)
    require_fit(read_engine_config(directory), engine, tensorrt_llm_version=tensorrt_llm_version)


def _require_model(directory: Path, *, loaded: bool) -> None:
    """A model that is as it was published; on a claim or in an image, one whose weights can be read to their end."""
    if not (directory / "config.json").is_file():
        raise ProgramFailure(
            "ModelMissing", f"{directory} holds no model (no config.json); delete the ModelArtifact to fetch it again"
        )
    if (directory / MANIFEST_NAME).is_file():
        require_whole(directory, kind="Model")
    elif loaded:
        read_weights(directory, weight_files(directory))


def _shared_memory_bytes() -> int:
    try:
        status = os.statvfs(_SHARED_MEMORY)
    except OSError:
        return 0
    return status.f_blocks * status.f_frsize


if __name__ == "__main__":
    sys.exit(run(CheckInput, check))

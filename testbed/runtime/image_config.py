"""What the simulator images say of themselves, and which releases they play."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from testbed.runtime.oci import ImageConfig
from testbed.runtime.simulator.release import (
    IMAGE_REFERENCE,
    TENSORRT_LLM_VERSION,
    TRITON_RELEASE,
    TRITON_SERVER_VERSION,
    VLLM_VERSION,
)

_REPOSITORY: Final = IMAGE_REFERENCE.rpartition(":")[0]
_PATHS: Final = (
    ("PATH", "/opt/tritonserver/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
    ("LD_LIBRARY_PATH", "/opt/tritonserver/lib"),
)
_SIMULATOR: Final = (
    ("TRITON_SERVER_USER", "triton-server"),
    ("TRITON_SERVER_GPU_ENABLED", "1"),
    ("NVIDIA_VISIBLE_DEVICES", "all"),
    ("NVIDIA_DRIVER_CAPABILITIES", "compute,utility"),
    ("PYTHONDONTWRITEBYTECODE", "1"),
    ("OMP_NUM_THREADS", "1"),
    ("OPENBLAS_NUM_THREADS", "1"),
    ("SIMULATOR_GPUS", "8"),
    ("SIMULATOR_GPU_PRODUCT", "NVIDIA H100 80GB HBM3"),
    ("SIMULATOR_DRIVER", "580.105.08"),
)


class Flavour(StrEnum):
    """What NVIDIA's images hold beside the server, by the word in their tags."""

    TENSORRT_LLM = "trtllm"
    VLLM = "vllm"


@dataclass(frozen=True)
class PlayedRelease:
    """A release that an image plays.

    Attributes:
        release: of Triton, as in the image's tag.
        flavour: TensorRT-LLM or vLLM.
        version: of either; it decides which options are known.
    """

    release: str
    flavour: Flavour
    version: str

    @property
    def reference(self) -> str:
        """The image's name with its tag."""
        return f"{_REPOSITORY}:{self.release}-{self.flavour}-python-py3"

    @property
    def overlay(self) -> str:
        """The folder of files that this release alone has; it need not exist."""
        return f"{self.release}-{self.flavour}"

    @property
    def config(self) -> ImageConfig:
        """Entrypoint, environment and labels."""
        title = "TensorRT-LLM" if self.flavour is Flavour.TENSORRT_LLM else "vLLM"
        return ImageConfig(
            reference=self.reference,
            entrypoint=("/opt/nvidia/nvidia_entrypoint.sh",),
            working_directory="/opt/tritonserver",
            environment=(
                *_PATHS,
                ("NVIDIA_TRITON_SERVER_VERSION", self.release),
                ("TRITON_SERVER_VERSION", TRITON_SERVER_VERSION),
                *self._own_variables(),
                *_SIMULATOR,
            ),
            labels=(
                ("org.opencontainers.image.title", f"simulator of NVIDIA's Triton with {title}; no GPU code inside"),
                ("dev.specdec.simulator", "true"),
            ),
        )

    def _own_variables(self) -> tuple[tuple[str, str], ...]:
        if self.flavour is Flavour.VLLM:
            return (("SIMULATOR_VLLM_VERSION", self.version),)
        return (("TRT_LLM_VER", self.version), ("SIMULATOR_TENSORRT_LLM_VERSION", self.version))


PLAYED: Final = (
    PlayedRelease(TRITON_RELEASE, Flavour.TENSORRT_LLM, TENSORRT_LLM_VERSION),
    PlayedRelease("26.04", Flavour.TENSORRT_LLM, "1.2.1"),
    PlayedRelease(TRITON_RELEASE, Flavour.VLLM, VLLM_VERSION),
    PlayedRelease("25.04", Flavour.VLLM, "0.8.1"),
    PlayedRelease("26.08", Flavour.VLLM, "0.27.1"),
)
"""The first is what stands for all of them where one is enough."""


def played(reference: str) -> PlayedRelease:
    """Return what an image of this name plays.

    Raises:
        KeyError: there is no such image.
    """
    return {each.reference: each for each in PLAYED}[reference]

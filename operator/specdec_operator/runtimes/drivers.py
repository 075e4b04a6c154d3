"""Which NVIDIA drivers run an image, by the CUDA version inside it."""

from __future__ import annotations

import functools
from importlib import resources
from typing import Annotated

from pydantic import Field

from specdec_operator.api.model import ApiModel
from specdec_operator.api.v1alpha1.scalars import Driver
from specdec_operator.api.yaml_text import read_yaml
from specdec_operator.runtimes.versions import at_least

Drivers = Annotated[list[Driver], Field(max_length=32)]


class CudaDrivers(ApiModel):
    """The drivers of one CUDA version."""

    version: str
    """Major and minor version of CUDA."""
    minimum: Driver
    """The oldest driver on GPUs of any kind."""
    data_center: Drivers
    """The oldest driver of each older branch on data-centre GPUs."""
    source: str
    """Where both were read."""


class _Table(ApiModel):
    cuda: list[CudaDrivers]


@functools.cache
def cuda_drivers() -> tuple[CudaDrivers, ...]:
    """What is known of each CUDA version, oldest first."""
    text = resources.files("specdec_operator.runtimes").joinpath("drivers.yaml").read_text(encoding="utf-8")
    return tuple(_Table.model_validate(read_yaml(text)).cuda)


def drivers_of(cuda: str) -> CudaDrivers | None:
    """The drivers of a CUDA version; of one that is not listed, those of the version before it in the same family."""
    family = [known for known in cuda_drivers() if known.version.partition(".")[0] == cuda.partition(".")[0]]
    return next((known for known in reversed(family) if at_least(cuda, known.version)), None)

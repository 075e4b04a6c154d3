"""A target or a draft: where it comes from, how it is split, in which precision it runs."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from specdec_operator.api.model import ApiModel
from specdec_operator.api.v1alpha1.quantization import Quantization
from specdec_operator.api.v1alpha1.source import ModelSource


class Parallelism(ApiModel):
    """How a model is split over GPUs."""

    tensor: Annotated[int, Field(ge=1, le=64)] = 1
    """Tensor parallelism: the number of GPUs (and MPI ranks on the engine backend) that share each layer."""
    pipeline: Annotated[int, Field(ge=1, le=16)] = 1
    """Pipeline parallelism: the number of groups of GPUs that share the layers among them."""

    @property
    def ranks(self) -> int:
        """GPUs of the model."""
        return self.tensor * self.pipeline


class Model(ApiModel):
    """A target or a draft model."""

    source: ModelSource
    """Where the model comes from."""
    parallelism: Parallelism = Parallelism()
    """How the model is split over GPUs."""
    quantization: Quantization | None = None
    """Lower precision, on TensorRTEngine; the model's own if left out. Models that are published quantized need no
    word here."""

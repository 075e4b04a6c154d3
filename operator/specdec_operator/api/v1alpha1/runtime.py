"""What serves the pair: backend, release, image, engine limits, serving options."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from specdec_operator.api.model import ApiModel
from specdec_operator.api.rules import Rule
from specdec_operator.api.v1alpha1 import patterns
from specdec_operator.api.v1alpha1.scalars import ImageReference

Backend = Literal["LLMAPI", "TensorRTEngine"]
PullPolicy = Literal["Always", "IfNotPresent", "Never"]


class RuntimeImage(ApiModel):
    """A serving image in place of the release's stock image, such as a private mirror."""

    reference: ImageReference
    """The image, with tag or digest."""
    pull_policy: PullPolicy = "IfNotPresent"
    """When the kubelet pulls it."""


class Runtime(ApiModel):
    """What serves inside Triton."""

    backend: Backend | None = None
    """LLMAPI: TensorRT-LLM's PyTorch path, no build. TensorRTEngine: engines built ahead. Left out: LLMAPI for Eagle3
    and None, TensorRTEngine for DraftTarget."""
    release: Annotated[str, Field(max_length=40, pattern=patterns.RELEASE.expression)] | None = None
    """The Triton release, as in `26.02`. Left out: the newest one without a known blocking defect for the backend."""
    image: RuntimeImage | None = None
    """A serving image in place of the release's stock image; it must hold what the release holds."""


class Engine(ApiModel):
    """Limits and types that TensorRT-LLM engines are built with."""

    max_batch_size: Annotated[int, Field(ge=1, le=2048)] | None = None
    """The most requests in one batch. Left out: serving.maxBatchSize, or 8."""
    max_input_length: Annotated[int, Field(ge=1, le=1048576)] | None = None
    """The longest prompt, in tokens. Left out: two thirds of maxSequenceLength."""
    max_sequence_length: Annotated[int, Field(ge=2, le=2097152)] | None = None
    """The longest prompt with its answer, in tokens; drafted tokens are added by the operator. Left out: 3072, or one
    and a half times maxInputLength if that is more, or the model's own context if that is shorter."""
    data_type: Literal["float16", "bfloat16"] | None = None
    """Arithmetic of the engine; the model's own type if left out."""
    logits_data_type: Literal["float32", "float16"] = "float32"
    """The type of logits, one for both engines of a pair and for the model repository."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            expression=(
                "!has(self.maxInputLength) || !has(self.maxSequenceLength) || "
                "self.maxInputLength < self.maxSequenceLength"
            ),
            message="maxInputLength must be less than maxSequenceLength, which counts the prompt and the answer",
            holds=lambda self: (
                self.max_input_length is None
                or self.max_sequence_length is None
                or self.max_input_length < self.max_sequence_length
            ),
            field=".maxInputLength",
        ),
    )


class KvCache(ApiModel):
    """The key-value cache."""

    free_gpu_memory_percent: Annotated[int, Field(ge=1, le=95, alias="freeGPUMemoryPercent")] = 80
    """The part of the GPU memory left after the model is loaded that the cache takes."""
    reuse: bool = True
    """Share cache blocks between requests with the same prefix. DraftTarget needs it."""


class Serving(ApiModel):
    """How requests are served."""

    max_batch_size: Annotated[int, Field(ge=1, le=2048)] | None = None
    """The most requests that Triton hands to the model at once. Left out: engine.maxBatchSize, or 8."""
    max_queue_delay_microseconds: Annotated[int, Field(ge=0, le=10_000_000)] = 0
    """How long Triton waits to fill a batch, in microseconds."""
    kv_cache: KvCache = KvCache()
    """The key-value cache."""

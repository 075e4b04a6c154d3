"""What serves the pair, and the limits of its engines."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from specdec_operator.api.model import ApiModel
from specdec_operator.api.rules import Rule
from specdec_operator.api.v1alpha1 import patterns
from specdec_operator.api.v1alpha1.quantization import BuildArgumentName, BuildArgumentValue
from specdec_operator.api.v1alpha1.scalars import Driver, ImageReference
from specdec_operator.api.v1alpha1.source import ClaimSource, PullPolicy

Backend = Literal["LLMAPI", "TensorRTEngine", "VLLM"]


class RuntimeImage(ApiModel):
    """A serving image in place of the release's stock image, such as a private mirror."""

    reference: ImageReference
    """The image, with tag or digest."""
    pull_policy: PullPolicy = "IfNotPresent"
    """When the kubelet pulls it."""


class Runtime(ApiModel):
    """What serves inside Triton."""

    backend: Backend | None = None
    """LLMAPI: TensorRT-LLM's PyTorch path, no build. TensorRTEngine: engines built ahead. VLLM: vLLM inside Triton.
    Left out: TensorRTEngine for DraftTarget, Eagle, Medusa, Lookahead and ReDrafter, LLMAPI for all others."""
    release: Annotated[str, Field(max_length=40, pattern=patterns.RELEASE.expression)] | None = None
    """The Triton release, as in `26.02`. Left out: the newest one without a known blocking defect for the backend."""
    image: RuntimeImage | None = None
    """A serving image in place of the release's stock image; it must hold what the release holds."""
    minimum_driver: Driver | None = None
    """The oldest NVIDIA driver to run it on, whatever the GPU, in place of what is known of the release: for drivers of
    which you know that they run the image, or to ask for newer ones."""


class PrebuiltEngines(ApiModel):
    """Engines that exist already: they are inspected and served, never built."""

    target: ClaimSource | None = None
    """The directory with the target's rankN.engine files and config.json."""
    draft: ClaimSource | None = None
    """The directory with the draft's."""


class Engine(ApiModel):
    """Limits and types that TensorRT-LLM engines are built with."""

    max_batch_size: Annotated[int, Field(ge=1, le=2048)] | None = None
    """The most requests in one batch. Left out: serving.maxBatchSize, or 8."""
    max_input_length: Annotated[int, Field(ge=1, le=1048576)] | None = None
    """The longest prompt, in tokens. Left out: two thirds of maxSequenceLength."""
    max_sequence_length: Annotated[int, Field(ge=2, le=2097152)] | None = None
    """The longest prompt with its answer, in tokens; drafted tokens are added by the operator. Left out: 3072, or one
    and a half times maxInputLength if that is more, or the model's own context if that is shorter."""
    max_batched_tokens: Annotated[int, Field(ge=1, le=1048576)] | None = None
    """The most tokens in one batch. Left out: 8192, or more where the longest prompt or the drafts need it."""
    data_type: Literal["float16", "bfloat16"] | None = None
    """Arithmetic of the engine; the model's own type if left out."""
    logits_data_type: Literal["float32", "float16"] = "float32"
    """The type of logits, one for both engines of a pair and for the model repository."""
    extra_build_arguments: Annotated[dict[BuildArgumentName, BuildArgumentValue], Field(max_length=32)] = {}
    """More options of trtllm-build, without dashes, as in `multiple_profiles: enable`; an empty value is a flag without
    one. Options that the operator sets itself are refused."""
    prebuilt: PrebuiltEngines | None = None
    """Engines that exist already, in place of built ones."""

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

"""Lower precision of a model's weights and cache."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from specdec_operator.api.model import ApiModel
from specdec_operator.api.rules import Rule
from specdec_operator.api.v1alpha1 import patterns
from specdec_operator.api.v1alpha1.source import ClaimSource, HuggingFaceSource

QuantizationFormat = Literal[
    "FP8", "INT8SmoothQuant", "INT4AWQ", "W4A8AWQ", "INT8WeightOnly", "INT4WeightOnly", "NVFP4"
]
KeyValueCacheDataType = Literal["FP8", "INT8"]


class CalibrationSource(ApiModel):
    """Where the texts for calibration come from: exactly one of the members."""

    hugging_face: HuggingFaceSource | None = None
    """A data set of a hub."""
    persistent_volume_claim: ClaimSource | None = None
    """A data set in a directory of a volume claim."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            expression="has(self.huggingFace) != has(self.persistentVolumeClaim)",
            message="give exactly one source: huggingFace or persistentVolumeClaim",
            holds=lambda self: (self.hugging_face is None) != (self.persistent_volume_claim is None),
        ),
    )


class Calibration(ApiModel):
    """How much text the quantizer looks at."""

    source: CalibrationSource | None = None
    """The texts. Left out: the quantizer downloads its own default (cnn_dailymail), which needs a way out of the
    cluster from the build's pod."""
    samples: Annotated[int, Field(ge=1, le=8192)] = 512
    """How many texts."""
    batch_size: Annotated[int, Field(ge=1, le=256)] = 1
    """How many at once."""


class Quantization(ApiModel):
    """Lower precision, made when the engine is built."""

    format: QuantizationFormat
    """FP8 (GPUs from Ada and Hopper on), INT8SmoothQuant, INT4AWQ, W4A8AWQ, INT8WeightOnly, INT4WeightOnly, NVFP4
    (GPUs from Blackwell on)."""
    key_value_cache_data_type: KeyValueCacheDataType | None = None
    """The type of the key-value cache; the model's own if left out."""
    calibration: Calibration | None = None
    """How much text the quantizer looks at; weight-only formats need none."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            expression="!has(self.calibration) || !(self.format in ['INT8WeightOnly', 'INT4WeightOnly'])",
            message="weight-only formats are not calibrated: remove calibration",
            holds=lambda self: self.calibration is None or self.format not in ("INT8WeightOnly", "INT4WeightOnly"),
            field=".calibration",
            reason="FieldValueForbidden",
        ),
    )


BuildArgumentName = Annotated[str, Field(min_length=1, max_length=64, pattern=patterns.BUILD_ARGUMENT.expression)]
BuildArgumentValue = Annotated[str, Field(max_length=128, pattern=patterns.BUILD_ARGUMENT_VALUE.expression)]

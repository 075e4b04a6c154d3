"""What engine builds know as data: model families with their converters, methods, number formats."""

from __future__ import annotations

import functools
from importlib import resources
from typing import Annotated

from pydantic import Field

from specdec_operator.api.model import ApiModel
from specdec_operator.api.v1alpha1.quantization import KeyValueCacheDataType, QuantizationFormat
from specdec_operator.api.v1alpha1.speculation import Method
from specdec_operator.api.yaml_text import read_yaml
from specdec_operator.runtimes.gpus import Capability, capability

CapabilityText = Annotated[str, Field(pattern=r"^[0-9]+\.[0-9]+$")]


class ConverterOptions(ApiModel):
    """How a family's converter spells its options."""

    model: str = "--model_dir"
    """The model's directory."""
    output: str = "--output_dir"
    """The checkpoint's directory."""
    tensor: str = "--tp_size"
    """Tensor parallelism."""
    pipeline: str = "--pp_size"
    """Pipeline parallelism, where the converter has it."""


class Family(ApiModel):
    """Architectures that one converter takes in one way."""

    name: str
    """A word for messages."""
    architectures: Annotated[list[str], Field(min_length=1)]
    """As config.json names them."""
    converter: str
    """The converter's name in a release's row, or in `converters`."""
    quantizer: bool
    """Whether the quantizer knows the family."""
    heads: list[Method] = []
    """Methods whose converter adds a head to a model of the family."""
    medusa_model_type: str = "llama"
    """What the MEDUSA converter calls the family."""
    pipeline: bool = True
    """Whether the converter splits into pipeline stages."""
    since: str = ""
    """The TensorRT-LLM that first converts it; empty if older than every release known."""
    arguments: list[str] = []
    """Options that the converter needs besides."""
    options: ConverterOptions = ConverterOptions()
    """How it spells the others."""
    weight_only_options: list[str] = ["--use_weight_only", "--weight_only_precision"]
    """How it spells weight-only quantization; the precision follows."""


class MethodBuild(ApiModel):
    """How engines of a method are built."""

    mode: str
    """The speculative decoding mode."""
    provable: bool = False
    """Whether the image's run script takes its engines without options of the method."""
    minimum_compute_capability: CapabilityText | None = None
    """The oldest GPUs that run it."""
    formats: list[QuantizationFormat] | None = None
    """Formats of its target; None for all."""

    @property
    def minimum_capability(self) -> Capability | None:
        """The oldest GPUs that run it, in an order that compares."""
        return capability(self.minimum_compute_capability) if self.minimum_compute_capability else None


class FormatBuild(ApiModel):
    """How a number format is made."""

    quantizer: str = ""
    """The quantizer's name of it; empty if the converter makes it."""
    converter: str = ""
    """The converter's precision; empty if the quantizer makes it."""
    minimum_compute_capability: CapabilityText | None = None
    """The oldest GPUs that run it."""
    fp8_context: bool = False
    """Whether attention over a paged context reads an FP8 cache in engines of the format."""
    integers: bool = False
    """Whether weights are integers, which data-centre Blackwell GPUs do not compute with."""
    size_percent: Annotated[int, Field(ge=1, le=100)]
    """Size of the weights, beside 16 bits."""

    @property
    def minimum_capability(self) -> Capability | None:
        """The oldest GPUs that run it, in an order that compares."""
        return capability(self.minimum_compute_capability) if self.minimum_compute_capability else None

    def pages(self, cache: KeyValueCacheDataType | None) -> bool:
        """Whether attention over a paged context reads a cache of the type in engines of the format."""
        return cache is None or (cache == "FP8" and self.fp8_context)


class EngineBuilds(ApiModel):
    """All of it."""

    converters: dict[str, list[str]]
    """Where images keep converters that a release's row does not name."""
    families: list[Family]
    """Model families."""
    methods: dict[Method, MethodBuild]
    """Methods that have engines."""
    formats: dict[QuantizationFormat, FormatBuild]
    """Number formats."""
    published_formats: list[str]
    """How the names of formats begin that converters take as they were published."""

    def family(self, architecture: str) -> Family | None:
        """The family of an architecture."""
        return next((family for family in self.families if architecture in family.architectures), None)

    def architectures(self) -> tuple[str, ...]:
        """Every architecture that has a converter."""
        return tuple(sorted(name for family in self.families for name in family.architectures))


@functools.cache
def engine_builds() -> EngineBuilds:
    """The data that ships with the operator."""
    text = resources.files("specdec_operator.runtimes").joinpath("engine_builds.yaml").read_text(encoding="utf-8")
    return EngineBuilds.model_validate(read_yaml(text))

"""One row of the capability table: what a Triton release holds, how it spells things, and what is broken in it.

What a release can do depends on the TensorRT-LLM and vLLM inside it, never on its tag: the two images of a tag move
apart, one tag holds what another held, and private images have tags of their own.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, Self, get_args

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from specdec_operator.api.model import ApiModel
from specdec_operator.api.v1alpha1 import patterns
from specdec_operator.api.v1alpha1.quantization import QuantizationFormat
from specdec_operator.api.v1alpha1.runtime import Backend
from specdec_operator.api.v1alpha1.scalars import Driver, ImageReference
from specdec_operator.api.v1alpha1.speculation import Method
from specdec_operator.pod.driver import ANY_DRIVER, DriverFloor
from specdec_operator.runtimes.drivers import Drivers, drivers_of
from specdec_operator.runtimes.versions import at_least

Version = Annotated[str, Field(max_length=40, pattern=patterns.VERSION.expression)]
ComputeCapability = Annotated[str, Field(max_length=8, pattern=patterns.COMPUTE_CAPABILITY.expression)]
Spelling = Annotated[str, Field(min_length=1, max_length=64)]
ImagePaths = Annotated[list[Annotated[str, Field(min_length=2, max_length=256)]], Field(min_length=1, max_length=8)]
"""Where an image may keep a file or directory: the first that exists."""


CORE_FAMILIES: Final = ("llama", "qwen", "gpt", "gemma", "phi")
"""Model families whose converter is among the core examples since TensorRT-LLM 0.19."""


def converter_paths() -> dict[str, list[str]]:
    """Where TensorRT-LLM's images keep their converters: the place since 0.19 before the one until 0.18."""
    script = "convert_checkpoint.py"
    core = {
        family: [f"/app/examples/models/core/{family}/{script}", f"/app/examples/{family}/{script}"]
        for family in CORE_FAMILIES
    }
    return {
        **core,
        "mixtral": core["llama"],
        "opt": [f"/app/examples/models/contrib/opt/{script}", f"/app/examples/opt/{script}"],
        **{method: [f"/app/examples/{method}/{script}"] for method in ("eagle", "medusa", "redrafter")},
        "quantize": ["/app/examples/quantization/quantize.py"],
    }


class Defect(ApiModel):
    """A known defect of a release."""

    id: Annotated[str, Field(max_length=128)]
    """A short name or the upstream thread."""
    backends: Annotated[list[Backend], Field(min_length=1)]
    """The backends that it breaks."""
    methods: list[Method] = []
    """The methods that it breaks there; all of them if empty."""
    blocking: bool = True
    """Whether a stock image of the release can't serve at all."""
    remedy: Annotated[str, Field(max_length=512)]
    """What to do."""

    def touches(self, backend: Backend, method: Method | None) -> bool:
        """Whether it breaks the method on the backend; without a method, whether it breaks every one."""
        return backend in self.backends and (not self.methods or method in self.methods)


class Evidence(ApiModel):
    """How it is known what a backend of a release takes and does. A row `like` another does not inherit it."""

    evidence: Literal["Read", "Inferred"] | None = None
    """Read: in upstream's files at the very tag or commit of the image. Inferred: from a neighbouring version, a pull
    request or a document, as soon as one of the files is not to be had. It is the weakest of what `tests/upstream/`
    holds of the backend, whose tests compare them."""
    run_with: Annotated[str, Field(max_length=128)] = ""
    """What really ran the image's own runtime, such as its digest and the GPU; empty if nothing did."""


class LlmApiSupport(Evidence):
    """The LLM API path of a release."""

    methods: list[Method]
    """What it can serve."""
    minimum_compute_capability: ComputeCapability | None = None
    """The oldest GPUs that it runs on, where that is known."""
    template: ImagePaths = ["/app/all_models/llmapi/tensorrt_llm"]
    """Where the image keeps the model template."""
    draft_model_key: Spelling = "speculative_model_dir"
    """The spelling of the draft's path in `speculative_config`."""
    eagle3_decoding_type: Spelling = "Eagle"
    """The spelling of EAGLE-3 in `speculative_config.decoding_type`."""
    draft_target_decoding_type: Spelling = "DraftTarget"
    """The spelling of draft and target there."""
    n_gram_length_key: Spelling = "max_draft_len"
    """The spelling of the draft length there, for drafts found in the text."""
    mtp_length_key: Spelling = "num_nextn_predict_layers"
    """The spelling of MTP's draft length in `speculative_config`."""
    overlap_scheduler_section: Spelling | None = None
    """Below which key of model.yaml `disable_overlap_scheduler` stands; at its top if left out."""
    two_model_methods: list[Method] = ["DraftTarget", "NGram"]
    """Methods that draft beside the target's engine and can't do with the scheduler that works ahead."""


class EngineSupport(Evidence):
    """The engine path of a release."""

    methods: list[Method]
    """What it can serve."""
    minimum_compute_capability: ComputeCapability | None = None
    """The oldest GPUs that it builds for and runs on, where that is known."""
    templates: ImagePaths = ["/app/all_models/inflight_batcher_llm"]
    """Where the image keeps the model templates."""
    quantization_formats: list[QuantizationFormat] = list(get_args(QuantizationFormat))
    """What its quantizer and converters make."""
    converters: dict[Spelling, ImagePaths] = Field(default_factory=converter_paths)
    """Where the image keeps each checkpoint converter, by family (`llama`, `qwen`, …) or method (`eagle`, …), and the
    quantizer (`quantize`)."""
    re_drafter_base: Literal["Model", "Checkpoint"] = "Checkpoint"
    """What the ReDrafter converter adds its drafter to: a Llama model as it was published, or a checkpoint that
    another converter or the quantizer made."""


class VllmSupport(Evidence):
    """The vLLM path of a release."""

    image: ImageReference
    """The stock image."""
    version: Version
    """The vLLM version inside."""
    cuda: Version | None = None
    """The CUDA version inside."""
    minimum_driver: Driver | None = None
    """The oldest NVIDIA driver that runs it on any GPU; known from `cuda` if left out."""
    data_center_drivers: Drivers | None = None
    """The oldest driver of each older branch that runs it on data-centre GPUs; known from `cuda` if left out."""
    minimum_compute_capability: ComputeCapability | None = None
    """The oldest GPUs that it runs on, where that is known."""
    methods: list[Method]
    """What it can serve."""
    configuration: Literal["Flat", "Nested"] = "Nested"
    """How `model.json` spells speculation: keys of their own, or one `speculative_config`."""
    environment: dict[Spelling, str] = {}
    """What the server needs in its environment, whatever the method."""
    method_environment: dict[Method, dict[Spelling, str]] = {}
    """What it needs besides for a method."""
    whole_prompt_methods: list[Method] = []
    """Methods with which the engine inside Triton refuses to take long prompts in pieces."""
    published_medusa_heads: bool = False
    """Whether it loads MEDUSA heads as their authors publish them, without a conversion."""

    def environment_for(self, method: Method) -> dict[str, str]:
        """What the server needs in its environment to serve the method."""
        return {**self.environment, **self.method_environment.get(method, {})}

    def at_least(self, version: str) -> bool:
        """Whether the vLLM inside is of that version or newer."""
        return at_least(self.version, version)


Support = LlmApiSupport | EngineSupport | VllmSupport
FrontEndOption = Literal["default-max-tokens", "model-control-mode"]
DEFAULT_MAX_TOKENS: Final[FrontEndOption] = "default-max-tokens"
MODEL_CONTROL: Final[FrontEndOption] = "model-control-mode"


class Release(ApiModel):
    """One release: a Triton tag and the versions inside its images."""

    name: Annotated[str, Field(max_length=40, pattern=patterns.RELEASE.expression)]
    """The tag's version, as users name it."""
    image: ImageReference | None = None
    """The stock image with TensorRT-LLM; left out where none was built."""
    tensorrt_llm: Annotated[Version | None, Field(alias="tensorrtLLM")] = None
    """The TensorRT-LLM version inside that image."""
    version_disputed: bool = False
    """Whether sources disagree on that version, so that an image with another one is taken as well."""
    cuda: Version | None = None
    """The CUDA version inside that image."""
    minimum_driver: Driver | None = None
    """The oldest NVIDIA driver that runs that image on any GPU; known from `cuda` if left out."""
    data_center_drivers: Drivers | None = None
    """The oldest driver of each older branch that runs it on data-centre GPUs; known from `cuda` if left out."""
    llm_api: Annotated[LlmApiSupport | None, Field(alias="LLMAPI")] = None
    """The LLM API path, where the release has it."""
    tensorrt_engine: Annotated[EngineSupport | None, Field(alias="TensorRTEngine")] = None
    """The engine path, where the release has it."""
    vllm: Annotated[VllmSupport | None, Field(alias="VLLM")] = None
    """The vLLM path with its image, where the release has it."""
    open_ai_front_end_options: Annotated[list[FrontEndOption], Field(alias="openAIFrontEndOptions")] = [
        DEFAULT_MAX_TOKENS
    ]
    """Options of the OpenAI front end that not every release has."""
    per_request_acceptance: bool = False
    """Whether responses of the LLM API carry true acceptance figures."""
    simulator: bool = False
    """Whether the image is a stand-in without GPUs; status and logs say so."""
    defects: list[Defect] = []
    """Known defects."""
    source: Annotated[str, Field(max_length=1024)]
    """Where the row's facts were read."""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        described = [
            name for name, part in (("LLMAPI", self.llm_api), ("TensorRTEngine", self.tensorrt_engine)) if part
        ]
        absent = [name for name, part in (("image", self.image), ("tensorrtLLM", self.tensorrt_llm)) if part is None]
        if described and absent:
            raise _missing(absent[0], f"{described[0]} needs it")
        if not described and self.vllm is None:
            raise _missing("LLMAPI, TensorRTEngine or VLLM", "a release serves by at least one of them")
        return self

    def support(self, backend: Backend) -> Support | None:
        """What the release says of a backend; None if it lacks it."""
        parts: dict[Backend, Support | None] = {
            "LLMAPI": self.llm_api,
            "TensorRTEngine": self.tensorrt_engine,
            "VLLM": self.vllm,
        }
        return parts[backend]

    def methods(self, backend: Backend) -> tuple[Method, ...]:
        """What the backend of this release can serve; empty if the release lacks the backend."""
        support = self.support(backend)
        return tuple(support.methods) if support else ()

    def front_end_has(self, option: FrontEndOption) -> bool:
        """Whether the release's OpenAI front end knows an option."""
        return option in self.open_ai_front_end_options

    def has_image_for(self, backend: Backend) -> bool:
        """Whether a stock image with the backend's runtime was built, whatever it can do."""
        return (self.vllm.image if self.vllm else None) is not None if backend == "VLLM" else self.image is not None

    def image_for(self, backend: Backend) -> str:
        """The stock image that serves a backend.

        Raises:
            KeyError: The release has none.
        """
        image = (self.vllm.image if self.vllm else None) if backend == "VLLM" else self.image
        if image is None:
            raise KeyError(backend)
        return image

    def driver_floor(self, backend: Backend) -> DriverFloor:
        """The NVIDIA drivers that run the image that serves a backend; any where that is not known."""
        held = self.vllm if backend == "VLLM" else self
        if held is None:
            return ANY_DRIVER
        known = drivers_of(held.cuda) if held.cuda else None
        own = held.minimum_driver is not None or held.data_center_drivers is not None
        known_branches = known.data_center if known else []
        return DriverFloor(
            minimum=held.minimum_driver or (known.minimum if known else ""),
            data_center=tuple(known_branches if held.data_center_drivers is None else held.data_center_drivers),
            source=f"the row of release {self.name}" if own or known is None else known.source,
        )

    def version_for(self, backend: Backend) -> str:
        """The version of the runtime that serves a backend; empty if the release lacks it."""
        return (self.vllm.version if self.vllm else "") if backend == "VLLM" else self.tensorrt_llm or ""

    @property
    def required_tensorrt_llm(self) -> str:
        """The TensorRT-LLM that an image must hold to be this release; empty where any is taken."""
        return "" if self.version_disputed else self.tensorrt_llm or ""

    def blocking_defect(self, backend: Backend, method: Method | None = None) -> Defect | None:
        """The first known defect that keeps a stock image from serving the method on the backend."""
        return next((d for d in self.defects if d.blocking and d.touches(backend, method)), None)

    def lesser_defects(self, backend: Backend, method: Method) -> tuple[Defect, ...]:
        """Known defects with which the method can be served on the backend all the same."""
        return tuple(d for d in self.defects if not d.blocking and d.touches(backend, method))


def _missing(field: str, why: str) -> PydanticCustomError:
    context: dict[str, Any] = {"field": field, "why": why}
    return PydanticCustomError("missing_part", "{field}: missing: {why}", context)

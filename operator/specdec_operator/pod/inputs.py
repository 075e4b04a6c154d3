"""What each program reads. The operator writes these same documents."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from specdec_operator.pod.document import Document
from specdec_operator.pod.driver import ANY_DRIVER, DriverFloor


@dataclass(frozen=True, kw_only=True)
class FetchInput(Document):
    """Download a hub repository into the store.

    Attributes:
        repository: owner and name.
        revision: branch, tag or commit.
        endpoint: the hub's address; the client's own default if empty.
        store: absolute path of the store's mount.
        directory: where in the store the files go, relative.
        allow_patterns: only files that one of these matches; those that a runtime reads if empty.
        ignore_patterns: files that are left out.
        content: Model, or DataSet for texts of a quantizer.
    """

    repository: str
    revision: str
    store: str
    directory: str
    endpoint: str = ""
    allow_patterns: tuple[str, ...] = ()
    ignore_patterns: tuple[str, ...] = ()
    content: str = "Model"


@dataclass(frozen=True, kw_only=True)
class InspectInput(Document):
    """Read the facts of a mounted directory.

    Attributes:
        directory: absolute path.
        content: Model, or DataSet for texts of a quantizer.
    """

    directory: str
    content: str = "Model"


@dataclass(frozen=True, kw_only=True)
class BuildStep(Document):
    """One command of an engine build.

    Attributes:
        name: convert, quantize, convert-drafter, build or prove.
        argv: the command; `{model}`, `{head}`, `{calibration}`, `{base}`, `{checkpoint}` and `{engine}` stand for
            directories. The first two elements may be candidates separated by `|`, of which the first that exists is
            taken.
    """

    name: str
    argv: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class BuildInput(Document):
    """Build an engine.

    Attributes:
        model: absolute path of the model's directory.
        store: absolute path of the store's mount.
        directory: where in the store the engine goes, relative.
        steps: the commands, in order.
        ranks: engine files expected.
        tensorrt_llm_version: the version that the image must hold; any if empty.
        gpu_product: GPU feature discovery's product label; any if empty.
        driver: the NVIDIA drivers that run the image.
        scratch_bytes: free bytes that the store must have before the first step.
        head: absolute path of the head that is built in; none if empty.
        calibration: absolute path of the quantizer's texts; none if empty.
    """

    model: str
    store: str
    directory: str
    steps: tuple[BuildStep, ...]
    ranks: int
    tensorrt_llm_version: str = ""
    gpu_product: str = ""
    driver: DriverFloor = ANY_DRIVER
    scratch_bytes: int = 0
    head: str = ""
    calibration: str = ""


@dataclass(frozen=True, kw_only=True)
class VerifyEngineInput(Document):
    """Check a published engine without a GPU. An empty digest accepts any."""

    directory: str
    ranks: int
    digest: str = ""


@dataclass(frozen=True, kw_only=True)
class SpellingProbe(Document):
    """An option whose spelling only the image knows: its Python source is asked, without importing it.

    Attributes:
        name: the placeholder; `${name}` in a template's files stands for the spelling.
        module: the module whose source tells it.
        dictionary: the variable there whose keys are spellings and whose values are classes; asked first.
        class_name: the class that the option chooses.
        field: the class's field whose type is a `Literal` of spellings; asked where there is no dictionary.
        expected: the release's spelling, taken where the source doesn't tell.
    """

    name: str
    module: str
    dictionary: str
    class_name: str
    field: str
    expected: str


@dataclass(frozen=True, kw_only=True)
class ModelTemplate(Document):
    """One model of the model repository.

    Attributes:
        name: the model's directory and name.
        candidates: template directories in the image; the first that exists is taken. None: an empty configuration.
        values: text for each `${variable}` of the template's config.pbtxt.
        optional_values: text for variables that only some releases' templates ask for.
        unset: variables that are left to the backend's default.
        fields: dotted proto field paths of config.pbtxt and the JSON they are set to.
        parameters: string parameters added to config.pbtxt or replaced in it.
        files: relative path and text of files written as they are, but for the placeholders of probes.
        probes: spellings that the image is asked for.
        expected_parameters: string parameters that the result must hold.
        expected_inputs: inputs that it must declare, with their types: Triton refuses a request with any other.
    """

    name: str
    candidates: tuple[str, ...] = ()
    values: Mapping[str, str] = field(default_factory=dict)
    optional_values: Mapping[str, str] = field(default_factory=dict)
    unset: tuple[str, ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    probes: tuple[SpellingProbe, ...] = ()
    expected_parameters: Mapping[str, str] = field(default_factory=dict)
    expected_inputs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class AssembleInput(Document):
    """Assemble a model repository from the image's own templates.

    Attributes:
        output: absolute path of the model repository; emptied first.
        models: its models.
        revision_model: the model that gets the parameter `specdec_revision`.
        revision: that parameter's value; none is written if empty.
        expected_digest: the digest that the dry assembly gave; any if empty.
    """

    output: str
    models: tuple[ModelTemplate, ...]
    revision_model: str
    revision: str = ""
    expected_digest: str = ""


@dataclass(frozen=True, kw_only=True)
class EngineExpectation(Document):
    """An engine that the server is going to load. Empty texts and zeros accept anything.

    Attributes:
        directory: absolute path of the engine.
        ranks: engine files.
        digest: digest of its manifest, or of its names, sizes and config.json where it is prebuilt.
        logits_data_type: float32, float16 or Triton's TYPE_FP32, TYPE_FP16.
        speculative_mode: trtllm-build's word, or none.
        draft_tokens: the most tokens that are drafted for one step.
        batch: the most requests that are served at once.
        sequence_length: the most tokens of a request, drafted ones included.
        tensor: ranks that share each layer.
        pipeline: groups of ranks that share the layers among them.
        prebuilt: it was built by somebody else, so it has no manifest.
        role: target or draft, for messages.
    """

    directory: str
    ranks: int
    digest: str = ""
    logits_data_type: str = ""
    speculative_mode: str = ""
    draft_tokens: int = 0
    batch: int = 0
    sequence_length: int = 0
    tensor: int = 0
    pipeline: int = 0
    prebuilt: bool = False
    role: str = "target"


@dataclass(frozen=True, kw_only=True)
class InspectEngineInput(Document):
    """Look at an engine that somebody else built, without a GPU. An empty version accepts any."""

    engine: EngineExpectation
    tensorrt_llm_version: str = ""


@dataclass(frozen=True, kw_only=True)
class ContentInput(Document):
    """What the server is to load.

    Attributes:
        tensorrt_llm_version: the version inside the image; empty accepts any.
        engines: engines that are loaded.
        model_directories: directories that must hold a config.json.
    """

    tensorrt_llm_version: str = ""
    engines: tuple[EngineExpectation, ...] = ()
    model_directories: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CheckInput(ContentInput):
    """What the serving container must find. Empty texts accept anything.

    Attributes:
        gpus: GPUs of the container.
        gpu_product: GPU feature discovery's product label.
        driver: the NVIDIA drivers that run the image.
        vllm_version: the version inside the image; what follows a `+` is a build's and may differ.
    """

    gpus: int
    gpu_product: str = ""
    driver: DriverFloor = ANY_DRIVER
    vllm_version: str = ""


@dataclass(frozen=True, kw_only=True)
class LaunchInput(ContentInput):
    """The serving process: its command, and variables laid over the container's environment.

    A container that starts again does so without the check before it: what is loaded is looked at here, too.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)

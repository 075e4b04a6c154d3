"""The ModelArtifact: one fetched or inspected model, one built engine or one assembled model repository.

An internal kind: the operator makes it, and it is the controller of its Job. Its status is the durable memory of
facts, attempts and terminal reasons.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from specdec_operator.api.model import ApiModel, StatusModel
from specdec_operator.api.rules import Rule
from specdec_operator.api.v1alpha1 import API_VERSION, patterns
from specdec_operator.api.v1alpha1.metadata import ObjectMeta
from specdec_operator.api.v1alpha1.pod import Pod
from specdec_operator.api.v1alpha1.scalars import (
    ImageReference,
    LabelValue,
    ObjectName,
    RelativePath,
    RelativePathOrRoot,
    ResourceName,
)
from specdec_operator.api.v1alpha1.source import FilePattern, PullPolicy, SecretKeyReference
from specdec_operator.api.v1alpha1.status import Condition

Digest = Annotated[str, Field(max_length=64, pattern=patterns.HEX_DIGEST.expression)]
JsonText = Annotated[str, Field(max_length=131072)]


Content = Literal["Model", "DataSet"]


class FetchInput(ApiModel):
    """Download a hub repository into the store."""

    content: Content = "Model"
    """What the repository holds: a model, or texts for a quantizer."""
    repository: Annotated[str, Field(min_length=3, max_length=193, pattern=patterns.HUB_REPOSITORY.expression)]
    """Owner and name."""
    revision: Annotated[str, Field(min_length=1, max_length=128, pattern=patterns.HUB_REVISION.expression)] = "main"
    """Branch, tag or commit."""
    endpoint: Annotated[str, Field(max_length=253, pattern=patterns.HUB_ENDPOINT_OR_DEFAULT.expression)] = ""
    """The hub's address; the client's own default if empty."""
    token_secret_ref: SecretKeyReference | None = None
    """The access token."""
    directory: RelativePath
    """Where in the store the files go."""
    allow_patterns: Annotated[list[FilePattern], Field(max_length=32)] = []
    """Only files that one of these matches; all if empty."""
    ignore_patterns: Annotated[list[FilePattern], Field(max_length=32)] = []
    """Files that one of these matches are left out."""


class InspectInput(ApiModel):
    """Read the facts of what a claim already holds."""

    content: Content = "Model"
    """What lies there: a model, or texts for a quantizer."""
    sub_path: RelativePathOrRoot = ""
    """Its directory inside the claim or image."""
    image: ImageReference | None = None
    """The image that holds it, in place of the claim."""
    image_pull_policy: PullPolicy = "IfNotPresent"
    """When the kubelet pulls that image."""


class MountedModel(ApiModel):
    """A model directory that a Job or pod reads: from a claim or from an image."""

    claim_name: ObjectName | None = None
    """The claim that holds it."""
    image: ImageReference | None = None
    """The image that holds it."""
    image_pull_policy: PullPolicy = "IfNotPresent"
    """When the kubelet pulls that image."""
    sub_path: RelativePathOrRoot = ""
    """Its directory inside the claim or image."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            expression="has(self.claimName) != has(self.image)",
            message="give exactly one of claimName and image",
            holds=lambda self: (self.claim_name is None) != (self.image is None),
        ),
    )


class BuildStep(ApiModel):
    """One command of an engine build."""

    name: Annotated[str, Field(min_length=1, max_length=32, pattern=patterns.STEP_NAME.expression)]
    """convert, quantize, convert-drafter, build or prove."""
    argv: Annotated[list[Annotated[str, Field(max_length=1024)]], Field(min_length=1, max_length=128)]
    """The command. `{model}`, `{head}`, `{calibration}`, `{base}`, `{checkpoint}` and `{engine}` stand for directories;
    the first two elements may be lists of candidates separated by `|`, of which the first that exists is taken."""


class BuildInput(ApiModel):
    """Build an engine."""

    model: MountedModel
    """The model to build from."""
    head: MountedModel | None = None
    """The head that is built into the same engine."""
    calibration: MountedModel | None = None
    """The quantizer's texts."""
    steps: Annotated[list[BuildStep], Field(min_length=1, max_length=8)]
    """The commands, in order."""
    directory: RelativePath
    """Where in the store the engine goes."""
    ranks: Annotated[int, Field(ge=1, le=64)]
    """Engine files expected: one for each rank."""
    tensorrt_llm_version: Annotated[
        str | None, Field(alias="tensorrtLLMVersion", min_length=1, max_length=32, pattern=patterns.VERSION.expression)
    ] = None
    """The version that the image must hold; any if left out."""
    weight_bytes: Annotated[int, Field(ge=0, le=2**50)] = 0
    """Bytes of the weights of model and head."""
    memory_bytes: Annotated[int, Field(ge=0, le=2**50)] = 0
    """Host memory that the steps are estimated to need; derived from the weights if 0."""
    scratch_bytes: Annotated[int, Field(ge=0, le=2**50)] = 0
    """Free space of the store that the checkpoints and the engine are estimated to need; derived from the weights if
    0."""


class PrebuiltInput(ApiModel):
    """Look at an engine that somebody else built, in `claimName`."""

    sub_path: RelativePathOrRoot = ""
    """The engine's directory inside the claim."""
    expectation: JsonText
    """What it must be, as the inspect_engine program reads it (JSON)."""


class AssembleInput(ApiModel):
    """Assemble the model repository in the serving image, dry."""

    repository: JsonText
    """The repository's description, as the assemble program reads it (JSON)."""


class JobGpu(ApiModel):
    """GPUs of a Job."""

    resource_name: ResourceName | None = None
    """The extended resource."""
    resource_claim_template: ObjectName | None = None
    """The ResourceClaimTemplate that gives the GPUs in place of an extended resource."""
    count: Annotated[int, Field(ge=1, le=64)]
    """How many."""
    product: LabelValue
    """The node label that the Job needs."""


class ModelArtifactSpec(ApiModel):
    """What is to be fetched, inspected, built or assembled. Never changes: another content is another artifact."""

    type: Literal["Model", "Engine", "Assembly"]
    """What it yields."""
    key: Digest
    """Hash of all that decides its content."""
    image: ImageReference
    """The image whose programs do the work."""
    image_pull_policy: PullPolicy = "IfNotPresent"
    """When the kubelet pulls it."""
    claim_name: ObjectName | None = None
    """The store, or the claim that is inspected."""
    fetch: FetchInput | None = None
    """Download a hub repository into the store."""
    inspect: InspectInput | None = None
    """Read the facts of what a claim already holds."""
    build: BuildInput | None = None
    """Build an engine."""
    prebuilt: PrebuiltInput | None = None
    """Look at an engine that a claim already holds."""
    assemble: AssembleInput | None = None
    """Assemble the model repository in the serving image, dry."""
    gpu: JobGpu | None = None
    """GPUs that the Job needs."""
    pod: Pod = Pod()
    """How the Job's pod is scheduled and run."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            expression=(
                "[has(self.fetch), has(self.inspect), has(self.build), has(self.prebuilt), has(self.assemble)]"
                ".exists_one(x, x)"
            ),
            message="give exactly one of fetch, inspect, build, prebuilt and assemble",
            holds=lambda self: (
                sum(p is not None for p in (self.fetch, self.inspect, self.build, self.prebuilt, self.assemble)) == 1
            ),
        ),
        Rule(
            expression="self == oldSelf",
            message="an artifact never changes: another content is another artifact",
            holds=lambda _self: True,
        ),
    )


ModelKind = Literal["Model", "EagleHead", "Eagle3Head", "MedusaHeads", "ReDrafterHead"]


class ModelFacts(StatusModel):
    """What a model says of itself."""

    architecture: Annotated[str, Field(max_length=128)]
    """config.json's first architecture; the kind where it names none."""
    kind: ModelKind = "Model"
    """A whole model, or which draft head: told by configuration and tensors, not by the architecture's name."""
    model_type: Annotated[str, Field(max_length=64)] = ""
    """The language model's family, as in `llama`."""
    vocabulary_size: Annotated[int, Field(ge=1)]
    """Rows of the embedding, as config.json says."""
    draft_vocabulary_size: Annotated[int, Field(ge=1)] | None = None
    """An EAGLE-3 head's own reduced vocabulary."""
    tokenizer_digest: Digest = ""
    """Hash of vocabulary, added tokens and merges; empty if the directory holds no tokenizer."""
    vocabulary_digest: Digest = ""
    """Hash of each token's number and text alone, the same for every format of the tokenizer's files."""
    bos_token_id: int | None = None
    """The token that starts a text."""
    eos_token_ids: Annotated[list[int], Field(max_length=16)] = []
    """The tokens that end a text."""
    layers: Annotated[int, Field(ge=1)]
    """Transformer layers."""
    hidden_size: Annotated[int, Field(ge=1)]
    """Width of the residual stream."""
    attention_heads: Annotated[int, Field(ge=1)]
    """Attention heads."""
    key_value_heads: Annotated[int, Field(ge=1)]
    """Key-value heads."""
    head_size: Annotated[int, Field(ge=1)]
    """Width of one attention head."""
    data_type: Annotated[str, Field(max_length=32)]
    """float16, bfloat16 or float32."""
    context_length: Annotated[int, Field(ge=1)]
    """The longest text that the model was made for, in tokens; 2147483647 for heads that attend to nothing."""
    intermediate_size: Annotated[int, Field(ge=1)] | None = None
    """Width of the feed-forward layers."""
    full_attention_layers: Annotated[int, Field(ge=1)] | None = None
    """Layers that look at the whole text, where the others look at a window or keep a state."""
    latent_size: Annotated[int, Field(ge=1)] | None = None
    """Elements that a token leaves in each layer's cache, where keys and values are kept compressed (MLA)."""
    target_hidden_size: Annotated[int, Field(ge=1)] | None = None
    """The width of the target that an EAGLE-3 head was made for."""
    medusa_heads: Annotated[int, Field(ge=1)] | None = None
    """MEDUSA heads in the weights."""
    medusa_layers: Annotated[int, Field(ge=1)] | None = None
    """Residual blocks of each MEDUSA head."""
    next_token_layers: Annotated[int, Field(ge=1)] | None = None
    """The model's own layers that predict further tokens (MTP)."""
    declared_base: Annotated[str, Field(max_length=256)] = ""
    """The target that a head says it was made for: a hub repository or a path."""
    quantization: Annotated[str, Field(max_length=64)] = ""
    """The lower precision that the model was published in, as in `fp8`, `awq` or `modelopt_nvfp4`."""
    weight_bytes: Annotated[int, Field(ge=0, le=2**46)]
    """Bytes of the weight files."""
    commit: Annotated[str, Field(max_length=64)] = ""
    """The hub's commit that was downloaded; empty for a claim."""
    content_digest: Digest
    """Hash of file names, sizes and the weight index: the revision of a model on a claim."""


class DataSetFacts(StatusModel):
    """What tells texts for a quantizer from others; at least one of the members."""

    commit: Annotated[str, Field(max_length=64)] = ""
    """The hub's commit that was downloaded; empty for a claim."""
    content_digest: Digest = ""
    """Hash of file names and sizes, and of what JSON files hold: the revision of texts on a claim."""

    @property
    def revision(self) -> str:
        """What decides the content: the commit, or the digest where there is none."""
        return self.commit or self.content_digest


class ModelArtifactStatus(StatusModel):
    """What came of it."""

    observed_generation: Annotated[int, Field(ge=-1)] = -1
    """The generation that this status speaks of."""
    conditions: Annotated[
        list[Condition],
        Field(
            max_length=4,
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
        ),
    ] = [
        Condition(type="Ready", status="Unknown", reason="Pending", message="waiting for the operator"),
    ]
    """Ready; while True Reconciling, Stalled: the state in the words that other tools read."""
    state: Literal["Pending", "Running", "Ready", "Failed"] = "Pending"
    """Failed is final until `specdec.dev/retry` asks again."""
    reason: Annotated[str, Field(max_length=64)] = "Pending"
    """A fixed word for the state's cause."""
    message: Annotated[str, Field(max_length=2048)] = ""
    """What is wrong, where, and what to do."""
    attempts: Annotated[int, Field(ge=0)] = 0
    """Jobs that ended or vanished; the next one's name follows from it."""
    failures: Annotated[int, Field(ge=0)] = 0
    """Failures in a row; they decide how long to wait, and when to give up."""
    verify_next: bool = False
    """Whether the next Job only looks if the engine is there: the last one is gone, and may have published it."""
    job: Annotated[str, Field(max_length=63)] = ""
    """The Job that runs or ran last."""
    not_before: Annotated[str, Field(max_length=32)] = ""
    """When the next attempt may start."""
    retry: Annotated[str, Field(max_length=128)] = ""
    """Hash of the requests to try again that were last obeyed."""
    ready_at: Annotated[str, Field(max_length=32)] = ""
    """When the content was last seen to be there."""
    claim_uid: Annotated[str, Field(max_length=64)] = ""
    """The claim that the content is in; another claim of the same name starts over."""
    facts: ModelFacts | None = None
    """What the model says of itself."""
    data_set: DataSetFacts | None = None
    """What tells the quantizer's texts from others."""
    digest: Digest = ""
    """Digest of the engine's manifest or of the assembled model repository."""

    @property
    def commit(self) -> str:
        """The hub's commit that was downloaded; empty if nothing was, or it is not known yet."""
        found = self.facts or self.data_set
        return found.commit if found else ""


class ModelArtifact(ApiModel):
    """One fetched or inspected model, one built engine or one assembled model repository."""

    api_version: Literal["specdec.dev/v1alpha1"] = API_VERSION
    kind: Literal["ModelArtifact"] = "ModelArtifact"
    metadata: ObjectMeta
    spec: ModelArtifactSpec
    """What is to be made."""
    status: ModelArtifactStatus = ModelArtifactStatus()
    """What came of it."""

"""What each kind of artifact's Job is given."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from specdec_operator.api.model import ApiModel
from specdec_operator.api.rules import Rule
from specdec_operator.api.v1alpha1 import patterns
from specdec_operator.api.v1alpha1.scalars import (
    Driver,
    ImageReference,
    LabelValue,
    ObjectName,
    RelativePath,
    RelativePathOrRoot,
    ResourceName,
)
from specdec_operator.api.v1alpha1.source import FilePattern, PullPolicy, SecretKeyReference

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


class DriverFloor(ApiModel):
    """The NVIDIA drivers that run an image."""

    minimum: Driver
    """The oldest one on GPUs of any kind."""
    data_center: Annotated[list[Driver], Field(max_length=32)] = []
    """The oldest one of each older branch on data-centre GPUs."""
    source: Annotated[str, Field(max_length=256)] = ""
    """Who says so."""


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
    driver: DriverFloor | None = None
    """The drivers that run the image; any if left out."""
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

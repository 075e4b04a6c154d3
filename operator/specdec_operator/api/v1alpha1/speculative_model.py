"""The SpeculativeModel: what a user declares."""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import Field

from specdec_operator.api.model import ApiModel
from specdec_operator.api.rules import Rule
from specdec_operator.api.v1alpha1 import API_VERSION
from specdec_operator.api.v1alpha1.metadata import ObjectMeta
from specdec_operator.api.v1alpha1.model import Model
from specdec_operator.api.v1alpha1.placement import Placement
from specdec_operator.api.v1alpha1.pod import Pod, Service, Update
from specdec_operator.api.v1alpha1.runtime import Backend, Engine, Runtime
from specdec_operator.api.v1alpha1.serving import Serving
from specdec_operator.api.v1alpha1.speculation import DRAFTING_METHODS, Speculation
from specdec_operator.api.v1alpha1.status import SpeculativeModelStatus
from specdec_operator.api.v1alpha1.storage import Storage

ENGINE_METHODS: Final = ("DraftTarget", "Eagle", "Medusa", "Lookahead", "ReDrafter")
"""Methods that the backend TensorRTEngine serves where none is named."""
_DRAFTING = ", ".join(f"'{method}'" for method in DRAFTING_METHODS)
_BUILT = ", ".join(f"'{method}'" for method in ENGINE_METHODS)
_ON_ENGINES = (
    f"(has(self.runtime.backend) ? self.runtime.backend == 'TensorRTEngine' : self.speculation.method in [{_BUILT}])"
)
_PLACES_DRAFT = f"(self.speculation.method == 'DraftTarget' && {_ON_ENGINES})"


class SpeculativeModelSpec(ApiModel):
    """A target model, a draft, a method, and how they are served."""

    target: Model
    """The model whose answers are served."""
    draft: Model | None = None
    """The model or head that proposes tokens. Present if and only if the method needs one."""
    speculation: Speculation
    """The method and its options."""
    replicas: Annotated[int, Field(ge=0, le=64)] = 1
    """Serving pods. Autoscalers target the SpeculativeModel's scale subresource."""
    suspend: bool = False
    """Stop serving and give the GPUs back; downloaded models and built engines are kept."""
    runtime: Runtime = Runtime()
    """What serves inside Triton."""
    engine: Engine | None = None
    """Limits and types of the engines, on the backend TensorRTEngine."""
    placement: Placement = Placement()
    """GPUs per model."""
    serving: Serving = Serving()
    """How requests are served."""
    storage: Storage | None = None
    """The store for downloaded models and built engines; the operator's default if left out."""
    pod: Pod = Pod()
    """How the pods are scheduled and run."""
    service: Service = Service()
    """The Service in front of the pods."""
    update: Update = Update()
    """How a changed revision replaces the serving one."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            expression=f"has(self.draft) || !(self.speculation.method in [{_DRAFTING}])",
            message="this method needs a draft: give draft.source",
            holds=lambda self: self.draft is not None or self.speculation.method not in DRAFTING_METHODS,
            field=".draft",
            reason="FieldValueRequired",
        ),
        Rule(
            expression=f"!has(self.draft) || self.speculation.method in [{_DRAFTING}]",
            message="this method takes no draft: remove draft or choose a method that drafts with a model",
            holds=lambda self: self.draft is None or self.speculation.method in DRAFTING_METHODS,
            field=".draft",
            reason="FieldValueForbidden",
        ),
        Rule(
            expression=f"!has(self.placement.draftDevices) || {_PLACES_DRAFT}",
            message=(
                "only the method DraftTarget on TensorRTEngine places its draft on devices of its own: "
                "remove draftDevices"
            ),
            holds=lambda self: self.placement.draft_devices is None or places_draft(self),
            field=".placement.draftDevices",
            reason="FieldValueForbidden",
        ),
        Rule(
            expression=(f"!{_PLACES_DRAFT} || !has(self.placement.targetDevices) || has(self.placement.draftDevices)"),
            message="draftDevices and targetDevices together tell the placement: give both or neither",
            holds=lambda self: (
                not places_draft(self)
                or self.placement.target_devices is None
                or self.placement.draft_devices is not None
            ),
            field=".placement.draftDevices",
            reason="FieldValueRequired",
        ),
        Rule(
            expression=(
                "!has(self.placement.targetDevices) || size(self.placement.targetDevices) == "
                "self.target.parallelism.tensor * self.target.parallelism.pipeline"
            ),
            message="targetDevices must name as many devices as target.parallelism (tensor times pipeline) says",
            holds=lambda self: (
                self.placement.target_devices is None
                or len(self.placement.target_devices) == self.target.parallelism.ranks
            ),
            field=".placement.targetDevices",
        ),
        Rule(
            expression=(
                "!has(self.placement.draftDevices) || !has(self.draft) || size(self.placement.draftDevices) == "
                "self.draft.parallelism.tensor * self.draft.parallelism.pipeline"
            ),
            message="draftDevices must name as many devices as draft.parallelism (tensor times pipeline) says",
            holds=lambda self: (
                self.placement.draft_devices is None
                or self.draft is None
                or len(self.placement.draft_devices) == self.draft.parallelism.ranks
            ),
            field=".placement.draftDevices",
        ),
        Rule(
            expression=f"!has(self.engine) || {_ON_ENGINES}",
            message=(
                "engine belongs to the backend TensorRTEngine: remove engine, or set runtime.backend to TensorRTEngine "
                "where the method allows it"
            ),
            holds=lambda self: self.engine is None or default_backend(self) == "TensorRTEngine",
            field=".engine",
            reason="FieldValueForbidden",
        ),
        Rule(
            expression=f"!has(self.placement.gpu.buildResourceClaimTemplate) || {_ON_ENGINES}",
            message="engines are built on the backend TensorRTEngine alone: remove buildResourceClaimTemplate",
            holds=lambda self: (
                self.placement.gpu.build_resource_claim_template is None or default_backend(self) == "TensorRTEngine"
            ),
            field=".placement.gpu.buildResourceClaimTemplate",
            reason="FieldValueForbidden",
        ),
        Rule(
            expression=f"!{_PLACES_DRAFT} || self.serving.kvCache.reuse",
            message="DraftTarget needs the cache of earlier steps: leave serving.kvCache.reuse true",
            holds=lambda self: not places_draft(self) or self.serving.kv_cache.reuse,
            field=".serving.kvCache.reuse",
        ),
        Rule(
            expression=(
                "!has(self.engine) || !has(self.engine.maxBatchSize) || !has(self.serving.maxBatchSize) || "
                "self.serving.maxBatchSize <= self.engine.maxBatchSize"
            ),
            message="serving.maxBatchSize must not exceed engine.maxBatchSize, which the engine is built with",
            holds=lambda self: (
                self.engine is None
                or self.engine.max_batch_size is None
                or self.serving.max_batch_size is None
                or self.serving.max_batch_size <= self.engine.max_batch_size
            ),
            field=".serving.maxBatchSize",
        ),
        Rule(
            expression=(
                "!has(self.draft) || self.speculation.method == 'DraftTarget' || "
                "self.draft.parallelism.tensor * self.draft.parallelism.pipeline == 1"
            ),
            message="a head is split like its target: leave draft.parallelism out",
            holds=lambda self: (
                self.draft is None or self.speculation.method == "DraftTarget" or self.draft.parallelism.ranks == 1
            ),
            field=".draft",
        ),
        Rule(
            expression=f"!has(self.serving.draftKvCache) || {_PLACES_DRAFT}",
            message="only the method DraftTarget on TensorRTEngine has a cache of the draft's: remove draftKvCache",
            holds=lambda self: self.serving.draft_kv_cache is None or places_draft(self),
            field=".serving.draftKvCache",
            reason="FieldValueForbidden",
        ),
    )


def default_backend(spec: SpeculativeModelSpec) -> Backend:
    """The backend that serves a spec: the declared one, or the method's own."""
    if spec.runtime.backend is not None:
        return spec.runtime.backend
    return "TensorRTEngine" if spec.speculation.method in ENGINE_METHODS else "LLMAPI"


def places_draft(spec: SpeculativeModelSpec) -> bool:
    """Whether the draft is a model of its own with devices of its own: DraftTarget on TensorRTEngine."""
    return spec.speculation.method == "DraftTarget" and default_backend(spec) == "TensorRTEngine"


class SpeculativeModel(ApiModel):
    """A target model and its draft, served as one checked, placed and proven unit."""

    api_version: Literal["specdec.dev/v1alpha1"] = API_VERSION
    kind: Literal["SpeculativeModel"] = "SpeculativeModel"
    metadata: ObjectMeta
    spec: SpeculativeModelSpec
    """What is wanted."""
    status: SpeculativeModelStatus = SpeculativeModelStatus()
    """What is."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            expression="size(self.metadata.name) <= 40 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
            message=(
                "metadata.name must be a DNS label of at most 40 characters that starts with a letter: "
                "the operator's objects are named after it"
            ),
            holds=lambda self: _short_label(self.metadata.name),
            field=".metadata.name",
        ),
    )


def _short_label(name: str) -> bool:
    return len(name) <= 40 and re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", name) is not None


def parse(document: dict[str, Any]) -> SpeculativeModel:
    """Read an object of the API server.

    Raises:
        pydantic.ValidationError: A field is missing, unknown or out of bounds.
    """
    return SpeculativeModel.model_validate(document)

"""The SpeculativeModel: what a user declares."""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from specdec_operator.api.model import ApiModel
from specdec_operator.api.rules import Rule
from specdec_operator.api.v1alpha1 import API_VERSION
from specdec_operator.api.v1alpha1.metadata import ObjectMeta
from specdec_operator.api.v1alpha1.placement import Placement
from specdec_operator.api.v1alpha1.pod import Pod, Service, Update
from specdec_operator.api.v1alpha1.runtime import Engine, Runtime, Serving
from specdec_operator.api.v1alpha1.source import Model
from specdec_operator.api.v1alpha1.speculation import Speculation
from specdec_operator.api.v1alpha1.status import SpeculativeModelStatus
from specdec_operator.api.v1alpha1.storage import Storage

_DRAFTING = ("Eagle3", "DraftTarget")


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
            expression="has(self.draft) || !(self.speculation.method in ['Eagle3', 'DraftTarget'])",
            message="this method needs a draft: give draft.source",
            holds=lambda self: self.draft is not None or self.speculation.method not in _DRAFTING,
            field=".draft",
            reason="FieldValueRequired",
        ),
        Rule(
            expression="!has(self.draft) || self.speculation.method in ['Eagle3', 'DraftTarget']",
            message="this method takes no draft: remove draft or choose a method that drafts with a model",
            holds=lambda self: self.draft is None or self.speculation.method in _DRAFTING,
            field=".draft",
            reason="FieldValueForbidden",
        ),
        Rule(
            expression="!has(self.placement.draftDevices) || self.speculation.method == 'DraftTarget'",
            message="only the method DraftTarget places its draft on devices of its own: remove draftDevices",
            holds=lambda self: self.placement.draft_devices is None or self.speculation.method == "DraftTarget",
            field=".placement.draftDevices",
            reason="FieldValueForbidden",
        ),
        Rule(
            expression=(
                "self.speculation.method != 'DraftTarget' || !has(self.placement.targetDevices) || "
                "has(self.placement.draftDevices)"
            ),
            message="draftDevices and targetDevices together tell the placement: give both or neither",
            holds=lambda self: (
                self.speculation.method != "DraftTarget"
                or self.placement.target_devices is None
                or self.placement.draft_devices is not None
            ),
            field=".placement.draftDevices",
            reason="FieldValueRequired",
        ),
        Rule(
            expression=(
                "!has(self.placement.targetDevices) || "
                "size(self.placement.targetDevices) == self.target.parallelism.tensor"
            ),
            message="targetDevices must name as many devices as target.parallelism.tensor says",
            holds=lambda self: (
                self.placement.target_devices is None
                or len(self.placement.target_devices) == self.target.parallelism.tensor
            ),
            field=".placement.targetDevices",
        ),
        Rule(
            expression=(
                "!has(self.placement.draftDevices) || !has(self.draft) || "
                "size(self.placement.draftDevices) == self.draft.parallelism.tensor"
            ),
            message="draftDevices must name as many devices as draft.parallelism.tensor says",
            holds=lambda self: (
                self.placement.draft_devices is None
                or self.draft is None
                or len(self.placement.draft_devices) == self.draft.parallelism.tensor
            ),
            field=".placement.draftDevices",
        ),
        Rule(
            expression=(
                "!has(self.engine) || (has(self.runtime.backend) ? self.runtime.backend == 'TensorRTEngine' : "
                "self.speculation.method == 'DraftTarget')"
            ),
            message=(
                "engine belongs to the backend TensorRTEngine: remove engine, or set runtime.backend to TensorRTEngine "
                "where the method allows it"
            ),
            holds=lambda self: self.engine is None or _is_built(self),
            field=".engine",
            reason="FieldValueForbidden",
        ),
        Rule(
            expression=(
                "!has(self.runtime.backend) || self.speculation.method != 'Eagle3' || self.runtime.backend == 'LLMAPI'"
            ),
            message="Eagle3 is served by the backend LLMAPI only: set runtime.backend to LLMAPI or leave it out",
            holds=lambda self: self.speculation.method != "Eagle3" or self.runtime.backend in (None, "LLMAPI"),
            field=".runtime.backend",
        ),
        Rule(
            expression=(
                "!has(self.runtime.backend) || self.speculation.method != 'DraftTarget' || "
                "self.runtime.backend == 'TensorRTEngine'"
            ),
            message=(
                "DraftTarget is served by the backend TensorRTEngine only: "
                "set runtime.backend to TensorRTEngine or leave it out"
            ),
            holds=lambda self: (
                self.speculation.method != "DraftTarget" or self.runtime.backend in (None, "TensorRTEngine")
            ),
            field=".runtime.backend",
        ),
        Rule(
            expression="self.speculation.method != 'DraftTarget' || self.serving.kvCache.reuse",
            message="DraftTarget needs the cache of earlier steps: leave serving.kvCache.reuse true",
            holds=lambda self: self.speculation.method != "DraftTarget" or self.serving.kv_cache.reuse,
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
            expression="!has(self.draft) || self.speculation.method != 'Eagle3' || self.draft.parallelism.tensor == 1",
            message="an EAGLE-3 head is split like its target: leave draft.parallelism out",
            holds=lambda self: (
                self.draft is None or self.speculation.method != "Eagle3" or self.draft.parallelism.tensor == 1
            ),
            field=".draft",
        ),
    )


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


def _is_built(spec: SpeculativeModelSpec) -> bool:
    if spec.runtime.backend is not None:
        return spec.runtime.backend == "TensorRTEngine"
    return spec.speculation.method == "DraftTarget"


def _short_label(name: str) -> bool:
    return len(name) <= 40 and re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", name) is not None


def parse(document: dict[str, Any]) -> SpeculativeModel:
    """Read an object of the API server.

    Raises:
        pydantic.ValidationError: A field is missing, unknown or out of bounds.
    """
    return SpeculativeModel.model_validate(document)

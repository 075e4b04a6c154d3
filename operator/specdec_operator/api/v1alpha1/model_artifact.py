"""The ModelArtifact: one fetched or inspected model, one built engine or one assembled model repository.

An internal kind: the operator makes it, and it is the controller of its Job. Its status is the durable memory of
facts, attempts and terminal reasons.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from specdec_operator.api.model import ApiModel, StatusModel
from specdec_operator.api.rules import Rule
from specdec_operator.api.v1alpha1 import API_VERSION
from specdec_operator.api.v1alpha1.artifact_inputs import (
    AssembleInput,
    BuildInput,
    FetchInput,
    InspectInput,
    JobGpu,
    PrebuiltInput,
)
from specdec_operator.api.v1alpha1.metadata import ObjectMeta
from specdec_operator.api.v1alpha1.model_facts import DataSetFacts, ModelFacts
from specdec_operator.api.v1alpha1.pod import Pod
from specdec_operator.api.v1alpha1.scalars import Digest, ImageReference, ObjectName
from specdec_operator.api.v1alpha1.source import PullPolicy
from specdec_operator.api.v1alpha1.status import Condition


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
    interruptions: Annotated[int, Field(ge=0)] = 0
    """Evictions and preemptions in a row, which are not failures; they have a limit of their own."""
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

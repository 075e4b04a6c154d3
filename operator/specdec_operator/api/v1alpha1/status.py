"""The status of a SpeculativeModel."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from specdec_operator.api.model import StatusModel
from specdec_operator.api.v1alpha1 import patterns

ConditionType = Literal[
    "Accepted",
    "ModelsCached",
    "PairVerified",
    "EnginesReady",
    "Available",
    "Served",
    "PairEffective",
    "Ready",
    "Reconciling",
    "Stalled",
]
Text = Annotated[str, Field(max_length=1024)]


class Condition(StatusModel):
    """One condition, as Kubernetes' own."""

    type: Annotated[str, Field(min_length=1, max_length=64, pattern=patterns.WORD.expression)]
    """What it is about."""
    status: Literal["True", "False", "Unknown"]
    """Whether it holds."""
    reason: Annotated[str, Field(min_length=1, max_length=64, pattern=patterns.WORD.expression)]
    """A fixed word for why."""
    message: Annotated[str, Field(max_length=2048)] = ""
    """What is wrong, where, and what to do."""
    last_transition_time: Annotated[str, Field(max_length=32)] = "1970-01-01T00:00:00Z"
    """When status last changed."""
    observed_generation: Annotated[int, Field(ge=-1)] = -1
    """The generation that it speaks of."""


class ArtifactStatus(StatusModel):
    """One artifact that the model uses."""

    role: Annotated[str, Field(max_length=32)]
    """What it is for: target, draft, target-engine, draft-engine, assembly."""
    kind: Literal["Model", "Engine", "Assembly"]
    """What it is."""
    name: Annotated[str, Field(max_length=63)]
    """The ModelArtifact's name."""
    key: Annotated[str, Field(max_length=64)]
    """Hash of all that decides its content."""
    way: Annotated[str, Field(max_length=64)] = ""
    """Hash of how this model would have it made: image, token, pod settings."""
    state: Annotated[str, Field(max_length=32)]
    """Pending, Running, Ready or Failed."""
    reason: Annotated[str, Field(max_length=64)] = ""
    """A fixed word for why it is not ready."""


class ModelPlacement(StatusModel):
    """Devices and MPI ranks of one model."""

    role: Annotated[str, Field(max_length=32)]
    """target or draft."""
    devices: Annotated[list[int], Field(max_length=64)]
    """Device ids inside the pod."""
    participant_ids: Annotated[list[int], Field(max_length=64)] = []
    """MPI ranks, where the backend has them."""


class PlacementStatus(StatusModel):
    """Where the pair runs."""

    gpus_per_replica: Annotated[int, Field(ge=0, alias="gpusPerReplica")] = 0
    """GPUs that each pod asks for."""
    world_size: Annotated[int, Field(ge=0)] = 0
    """MPI processes that are started with each pod."""
    orchestration: Annotated[str, Field(max_length=32)] = ""
    """How the processes find each other. Single: the server is alone. Leader: rank 0 answers and computes.
    Orchestrator: rank 0 directs the ranks that were started with it. SpawningOrchestrator: it starts them itself."""
    models: Annotated[list[ModelPlacement], Field(max_length=4)] = []
    """Devices and ranks per model."""


class EndpointStatus(StatusModel):
    """How clients reach the pair."""

    http: Text = ""
    """URL of Triton's HTTP endpoint."""
    grpc: Text = ""
    """Address of Triton's gRPC endpoint."""
    metrics: Text = ""
    """URL of Triton's metrics."""
    open_ai: Annotated[Text, Field(alias="openAI")] = ""
    """Base URL of OpenAI's protocol, where serving.openAIFrontEnd asks for it."""
    model_name: Annotated[str, Field(max_length=63)] = ""
    """The Triton model that clients call."""
    request_parameters: Annotated[dict[Annotated[str, Field(max_length=128)], Text], Field(max_length=16)] = {}
    """What clients must send beside the prompt, such as num_draft_tokens; values are JSON."""


class Pin(StatusModel):
    """Something that the spec left open, resolved once and kept."""

    name: Annotated[str, Field(max_length=128)]
    """The field that was left open, such as runtime.release."""
    value: Text
    """What it was resolved to."""
    reason: Text = ""
    """Why."""
    governed_by: Annotated[str, Field(max_length=64)] = ""
    """Hash of the spec fields that decide it; another hash resolves it anew."""


class FailedRevision(StatusModel):
    """A revision that did not come to serve; it is not tried again until the spec changes."""

    name: Annotated[str, Field(max_length=63)]
    """The ControllerRevision's name."""
    reason: Annotated[str, Field(max_length=64)]
    """A fixed word for why."""
    message: Text = ""
    """What was seen."""


class ProofStatus(StatusModel):
    """What the operator's last proof through the Service was about; repeated when either changes."""

    revision: Annotated[str, Field(max_length=63)]
    """The ControllerRevision that answered."""
    pods: Annotated[str, Field(max_length=64)]
    """Hash of the pods behind the Service."""
    drafted: Annotated[int, Field(ge=0)] | None = None
    """Drafted tokens that the answers counted; absent where the release does not report them."""
    accepted: Annotated[int, Field(ge=0)] | None = None
    """Those that the target accepted."""
    wrong_since: Annotated[str, Field(max_length=32)] | None = None
    """Since when proofs of these pods have been wrong; absent if they were right."""


class SpeculativeModelStatus(StatusModel):
    """What the operator sees and did."""

    observed_generation: Annotated[int, Field(ge=-1)] = -1
    """The generation that this status speaks of."""
    conditions: Annotated[
        list[Condition],
        Field(
            max_length=16,
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
        ),
    ] = [
        Condition(type="Ready", status="Unknown", reason="Pending", message="waiting for the operator"),
    ]
    """Accepted, ModelsCached, PairVerified, EnginesReady, Available, Served, Ready; PairEffective of a pair; while True
    Reconciling, Stalled."""
    artifacts: Annotated[list[ArtifactStatus], Field(max_length=16)] = []
    """The models and engines in use."""
    placement: PlacementStatus | None = None
    """GPUs, devices and ranks."""
    endpoint: EndpointStatus | None = None
    """How clients reach the pair."""
    replicas: Annotated[int, Field(ge=0)] = 0
    """Serving pods that exist."""
    ready_replicas: Annotated[int, Field(ge=0)] = 0
    """Serving pods that answer."""
    selector: Text = ""
    """Label selector of the serving pods, for autoscalers."""
    backend: Annotated[str, Field(max_length=32)] = ""
    """The backend in use."""
    pins: Annotated[
        list[Pin],
        Field(
            max_length=16,
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
        ),
    ] = []
    """What the spec left open and how it was resolved."""
    current_revision: Annotated[str, Field(max_length=63)] = ""
    """The ControllerRevision that serves."""
    update_revision: Annotated[str, Field(max_length=63)] = ""
    """The ControllerRevision that is being prepared or rolled out."""
    failed_revision: FailedRevision | None = None
    """The last revision that did not come to serve."""
    proof: ProofStatus | None = None
    """What the last proof was about."""
    acceptance: Annotated[str, Field(max_length=32)] = ""
    """Whether the pair's drafts are accepted: Effective, Ineffective or Unknown."""
    controller: Text = ""
    """The operator that writes this status: namespace/release."""

"""What a backend is asked to serve, and what it answers with: a model repository, a command, a request.

The directories are the container's, the same for every model, so that nothing of a spec becomes a path.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from specdec_operator.api.v1alpha1.model import Parallelism
    from specdec_operator.api.v1alpha1.serving import KvCache, Serving
    from specdec_operator.api.v1alpha1.speculation import Method, Speculation
    from specdec_operator.pod.inputs import ModelTemplate
    from specdec_operator.runtimes.table import Release

MODEL_DIRECTORIES = {"target": "/models/target", "draft": "/models/draft"}
ENGINE_DIRECTORIES = {"target": "/engines/target", "draft": "/engines/draft"}
REPOSITORY = "/repository"
HTTP_PORT, GRPC_PORT, METRICS_PORT = 8000, 8001, 8002
OPEN_AI_PORT = 9000
EXIT_TIMEOUT_SECONDS = 30
SERVER = "/opt/tritonserver/bin/tritonserver"

LogitsTransfer = Literal["Disabled", "Standard", "Fast"]


@dataclass(frozen=True, kw_only=True)
class PlacedDevices:
    """Devices and MPI ranks of one model."""

    devices: tuple[int, ...]
    participant_ids: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ServingRequest:
    """A valid spec, reduced to what decides the serving files.

    Attributes:
        speculation: The method's options, as declared.
        draft_tokens: The most tokens drafted per step; 0 without speculation.
        devices: Per role that has GPUs of its own.
        world_size: MPI processes that are started with the pod; 1 where the server starts alone or starts the others.
        batch: The most requests that Triton hands over at once.
        target_parallelism: How the target is split.
        draft_parallelism: How the draft is split; None without one.
        shared_devices: Whether draft and target have a GPU in common.
        logits_transfer: How draft logits reach the target; None unless the draft is a model on engines.
        choices: Nodes of the draft tree, parents first; None for the backend's own default.
        context_length: The longest prompt with its answer, in tokens, that the target's files allow.
        draft_context_length: The same of the draft's; None without a draft.
        kv_tokens: Per role, the most tokens of its key-value cache, within what is declared; only where two models
            share a GPU.
        host_cache_bytes: Per role, host memory that takes what the GPU's cache does not hold; only where asked for.
        end_id: The token that ends a text, for the canary.
    """

    method: Method
    speculation: Speculation
    release: Release
    draft_tokens: int
    devices: Mapping[str, PlacedDevices]
    world_size: int
    batch: int
    serving: Serving
    target_parallelism: Parallelism
    draft_parallelism: Parallelism | None = None
    shared_devices: bool = False
    logits_transfer: LogitsTransfer | None = None
    choices: tuple[tuple[int, ...], ...] | None = None
    context_length: int | None = None
    draft_context_length: int | None = None
    kv_tokens: Mapping[str, int] = field(default_factory=dict)
    host_cache_bytes: Mapping[str, int] = field(default_factory=dict)
    logits_data_type: str = "float32"
    end_id: int | None = None

    def cache(self, role: str) -> KvCache:
        """The key-value cache of a role's model: the draft's is as the target's unless it is declared."""
        draft = self.serving.draft_kv_cache if role == "draft" else None
        return draft or self.serving.kv_cache


@dataclass(frozen=True, kw_only=True)
class RequestTensor:
    """One input of the canary request, as KServe's protocol names it; values are flat, row by row."""

    name: str
    datatype: str
    shape: tuple[int, ...]
    values: tuple[str | int | float | bool, ...]

    @property
    def triton_type(self) -> str:
        """Its type as a model's configuration names it."""
        return "TYPE_STRING" if self.datatype == "BYTES" else f"TYPE_{self.datatype}"


@dataclass(frozen=True, kw_only=True)
class Derived:
    """A value that a backend needs other than declared, or that nobody declared; status tells it.

    Attributes:
        name: The spec's field, from `spec` on.
        reason: Why it is what it is.
    """

    name: str
    value: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class ServingFiles:
    """What serves.

    Attributes:
        templates: The model repository, model by model.
        argv: The server's command.
        environment: What the command needs in its environment.
        endpoint_model: The Triton model that clients call.
        output: Its output that holds the answer.
        tensors: A small greedy request.
        request_parameters: What clients must send beside the prompt; values are JSON.
        counted: Greedy requests whose answers count drafted and accepted tokens; none where a release does not.
        decoupled: Whether the endpoint model may answer in pieces: Triton's HTTP then takes it by `generate` alone.
        takes_at_once: Whether the model takes requests from Triton's queue before it works on them, so that none is
            ever seen to wait.
        metrics_port: Where the process shows Triton's metrics.
        open_ai_port: Where OpenAI's protocol is served; None for nowhere.
        derived: What the backend needs that the spec doesn't say.
    """

    templates: tuple[ModelTemplate, ...]
    argv: tuple[str, ...]
    endpoint_model: str
    tensors: tuple[RequestTensor, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    output: str = "text_output"
    request_parameters: Mapping[str, str] = field(default_factory=dict)
    counted: tuple[tuple[RequestTensor, ...], ...] = ()
    decoupled: bool = False
    takes_at_once: bool = False
    metrics_port: int = METRICS_PORT
    open_ai_port: int | None = None
    derived: tuple[Derived, ...] = ()

    @property
    def generate_request(self) -> dict[str, str | int | float | bool]:
        """The same request as a body of Triton's generate extension."""
        return {tensor.name: tensor.values[0] for tensor in self.tensors}


CANARY_PROMPT = "The capital of France is"
CANARY_TOKENS = 8
COUNTED_PROMPTS = (
    CANARY_PROMPT,
    "Once upon a time",
    "The quick brown fox",
    "1, 2, 3, 4,",
)
"""Texts that go on easily: a pair that fits accepts much of its drafts."""
COUNTED_TOKENS = 64


def port_arguments() -> tuple[str, ...]:
    """The ports, as NVIDIA's launch script gives them; the same for every rank."""
    return (f"--grpc-port={GRPC_PORT}", f"--http-port={HTTP_PORT}", f"--metrics-port={METRICS_PORT}")


def server_command(*, log_verbosity: int = 0) -> tuple[str, ...]:
    """One server without MPI, up to what its backend asks for."""
    return (
        SERVER,
        f"--model-repository={REPOSITORY}",
        f"--exit-timeout-secs={EXIT_TIMEOUT_SECONDS}",
        *port_arguments(),
        *((f"--log-verbose={log_verbosity}",) if log_verbosity else ()),
    )

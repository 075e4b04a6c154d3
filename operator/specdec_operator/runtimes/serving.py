"""What a backend is asked to serve, and what it answers with: a model repository, a command, a request.

The directories are the container's, the same for every model, so that nothing of a spec becomes a path.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from specdec_operator.api.v1alpha1.serving import Serving
    from specdec_operator.api.v1alpha1.speculation import Method
    from specdec_operator.pod.inputs import ModelTemplate
    from specdec_operator.runtimes.table import Release

MODEL_DIRECTORIES = {"target": "/models/target", "draft": "/models/draft"}
ENGINE_DIRECTORIES = {"target": "/engines/target", "draft": "/engines/draft"}
REPOSITORY = "/repository"
HTTP_PORT, GRPC_PORT, METRICS_PORT = 8000, 8001, 8002
EXIT_TIMEOUT_SECONDS = 30
SERVER = "/opt/tritonserver/bin/tritonserver"


@dataclass(frozen=True, kw_only=True)
class PlacedDevices:
    """Devices and MPI ranks of one model."""

    devices: tuple[int, ...]
    participant_ids: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ServingRequest:
    """A valid spec, reduced to what decides the serving files.

    Attributes:
        draft_tokens: The most tokens drafted per step; 0 without speculation.
        devices: Per role that has GPUs of its own.
        world_size: MPI processes; 1 starts the server without MPI.
        batch: The most requests that Triton hands over at once.
        end_id: The token that ends a text, for the canary.
    """

    method: Method
    release: Release
    draft_tokens: int
    devices: Mapping[str, PlacedDevices]
    world_size: int
    batch: int
    serving: Serving
    logits_data_type: str = "float32"
    end_id: int | None = None


@dataclass(frozen=True, kw_only=True)
class RequestTensor:
    """One input of the canary request, as KServe's protocol names it; values are flat, row by row."""

    name: str
    datatype: str
    shape: tuple[int, ...]
    values: tuple[str | int | float | bool, ...]


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
    """

    templates: tuple[ModelTemplate, ...]
    argv: tuple[str, ...]
    endpoint_model: str
    tensors: tuple[RequestTensor, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    output: str = "text_output"
    request_parameters: Mapping[str, str] = field(default_factory=dict)

    @property
    def generate_request(self) -> dict[str, str | int | float | bool]:
        """The same request as a body of Triton's generate extension."""
        return {tensor.name: tensor.values[0] for tensor in self.tensors}


CANARY_PROMPT = "The capital of France is"
CANARY_TOKENS = 8


def port_arguments() -> tuple[str, ...]:
    """The ports, as NVIDIA's launch script gives them; the same for every rank."""
    return (f"--grpc-port={GRPC_PORT}", f"--http-port={HTTP_PORT}", f"--metrics-port={METRICS_PORT}")

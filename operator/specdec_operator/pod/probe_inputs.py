"""What the probes read; apart from the other programs' inputs, since a probe starts every few seconds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from specdec_operator.pod.document import Document


@dataclass(frozen=True, kw_only=True)
class CanaryInput(Document):
    """One small real request.

    Attributes:
        port: HTTP port on loopback.
        model: the endpoint model.
        request: body for `/v2/models/<model>/generate`.
        output: key of the answer that must hold text.
        timeout_seconds: for the whole.
        state_file: absolute path; made on success, so that later runs are cheap.
    """

    port: int
    model: str
    request: Mapping[str, Any]
    output: str
    timeout_seconds: float
    state_file: str


@dataclass(frozen=True, kw_only=True)
class LivenessInput(Document):
    """When a server counts as stuck.

    Attributes:
        port: HTTP port on loopback.
        metrics_port: metrics port on loopback.
        model: the endpoint model.
        request: body of a one-token request.
        output: key of the answer that must hold text.
        timeout_seconds: for the one-token request.
        stuck_seconds: how long requests may be pending without one being answered.
        takes_at_once: whether the server takes every request out of Triton's queue at once, so that none is ever
            pending there: the one-token request is then tried whenever nothing was answered for stuck_seconds.
        state_file: absolute path; what the last run saw.
    """

    port: int
    metrics_port: int
    model: str
    request: Mapping[str, Any]
    output: str
    timeout_seconds: float
    stuck_seconds: float
    state_file: str
    takes_at_once: bool = False

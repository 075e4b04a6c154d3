"""The operator's own proof that a model serves: through its Service, one real request, one real answer."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from specdec_operator.triton.server import Refused, TritonServer
from specdec_operator.triton.transport import NotUnderstood, Transport, Unreachable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from specdec_operator.triton.tensors import Tensor

DRAFTED_OUTPUT = "total_draft_tokens"
ACCEPTED_OUTPUT = "total_accepted_draft_tokens"
_NOT_NOW = frozenset({502, 503, 504})
_REVISION = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


@dataclass(frozen=True)
class Endpoint:
    """Where a model serves over HTTP."""

    host: str
    port: int

    def address(self) -> str:
        """Host and port, without a scheme."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, kw_only=True)
class ProofRequest:
    """What to ask, and of which revision the answer must be.

    Attributes:
        model: the endpoint model.
        tensors: its inputs.
        output: the output that must hold text.
        revision: what the served model's `specdec_revision` must be; any if empty.
        counted: further requests, for their counts of drafted and accepted tokens.
        decoupled: whether the model may answer in pieces, so that only `generate` may ask it.
    """

    model: str
    tensors: tuple[Tensor, ...]
    output: str
    revision: str = ""
    counted: tuple[tuple[Tensor, ...], ...] = ()
    decoupled: bool = False


class Outcome(StrEnum):
    """How a proof ended."""

    SERVED = "Served"
    UNREACHABLE = "Unreachable"
    NOT_READY = "NotReady"
    STALE_REVISION = "StaleRevision"
    WRONG_ANSWER = "WrongAnswer"


@dataclass(frozen=True, kw_only=True)
class Proof:
    """What a proof found.

    Attributes:
        outcome: how it ended.
        message: what was seen, and what to do.
        text: the answer.
        drafted: draft tokens that the server reports; None if it reports none. 0 says nothing: some releases always
            report 0.
        accepted: those that the target accepted, likewise.
    """

    outcome: Outcome
    message: str
    text: str = ""
    drafted: int | None = None
    accepted: int | None = None


class Prover(Protocol):
    """Proves that an endpoint serves."""

    async def prove(self, endpoint: Endpoint, request: ProofRequest) -> Proof:
        """Ask the endpoint; whatever the server does is an outcome, never an exception."""


class TritonProver:
    """Proves over Triton's HTTP protocol.

    The server runs in a tenant's pod: it is trusted with nothing. It can't lead the proof elsewhere, and what it says
    is quoted only once it has shown the configuration of the revision, which makes it one that this operator rendered.

    Args:
        connect_seconds: for the first answer of the server.
        whole_seconds: for the proof, and again for the counts.
    """

    def __init__(self, *, connect_seconds: float = 5.0, whole_seconds: float = 60.0) -> None:
        self._connect_seconds = connect_seconds
        self._whole_seconds = whole_seconds

    async def prove(self, endpoint: Endpoint, request: ProofRequest) -> Proof:
        """Check readiness and revision, and ask for one answer."""
        async with Transport(endpoint.host, endpoint.port) as transport:
            server = TritonServer(transport, request.model)
            try:
                async with asyncio.timeout(self._whole_seconds):
                    proof = await self._prove(server, endpoint, request)
            except TimeoutError:
                return _wrong(f"{request.model} gave no answer within {self._whole_seconds:g} s; see the pod's log")
            if proof.outcome is Outcome.SERVED and request.counted:
                return await _counted(server, request, proof, seconds=self._whole_seconds)
            return proof

    async def _prove(self, server: TritonServer, endpoint: Endpoint, request: ProofRequest) -> Proof:
        unready = await self._unready(server, endpoint, request)
        if unready:
            return unready
        try:
            return await _shown_revision(server, request) or _answered(await _ask(server, request), request)
        except NotUnderstood as error:
            return _not_understood(endpoint, error)
        except Unreachable as error:
            return _wrong(f"{request.model} at {endpoint.address()} broke off: {error}; see the pod's log")
        except Refused as error:
            outcome = Outcome.NOT_READY if error.status in _NOT_NOW else Outcome.WRONG_ANSWER
            return Proof(outcome=outcome, message=f"{request.model} refused the request: {error}")

    async def _unready(self, server: TritonServer, endpoint: Endpoint, request: ProofRequest) -> Proof | None:
        """Why there is nothing to ask yet; None if server and model say that they are ready."""
        try:
            async with asyncio.timeout(self._connect_seconds):
                if await server.is_ready():
                    return None
        except TimeoutError:
            return _unreachable(endpoint, f"no answer within {self._connect_seconds:g} s")
        except Unreachable as error:
            return _unreachable(endpoint, str(error))
        except NotUnderstood as error:
            return _not_understood(endpoint, error)
        message = f"{request.model} at {endpoint.address()} is not ready; see the pod's log"
        return Proof(outcome=Outcome.NOT_READY, message=message)


async def _shown_revision(server: TritonServer, request: ProofRequest) -> Proof | None:
    """Why the server is not one of the wanted revision; None if it is."""
    try:
        served = await server.revision()
    except Refused as error:
        # Not known to be this operator's: not quoted.
        return _wrong(f"{request.model}'s configuration can't be read: HTTP {error.status}; see the pod's log")
    if request.revision in ("", served):
        return None
    shown = served if _REVISION.fullmatch(served) else "(none)"
    message = f"{request.model} serves revision {shown}, wanted is {request.revision}"
    return Proof(outcome=Outcome.STALE_REVISION, message=message)


async def _ask(server: TritonServer, request: ProofRequest, tensors: tuple[Tensor, ...] = ()) -> Mapping[str, str]:
    """One answer, by the way that the model takes."""
    ask = server.generate if request.decoupled else server.infer
    return await ask(tensors or request.tensors, (request.output, DRAFTED_OUTPUT, ACCEPTED_OUTPUT))


async def _counted(server: TritonServer, request: ProofRequest, proof: Proof, *, seconds: float) -> Proof:
    """The proof with the counts of all requests; where they are not to be had, what was answered stays proven."""
    drafted, accepted = proof.drafted, proof.accepted
    try:
        async with asyncio.timeout(seconds):
            for tensors in request.counted:
                outputs = await _ask(server, request, tensors)
                drafted = _sum(drafted, _count(outputs, DRAFTED_OUTPUT))
                accepted = _sum(accepted, _count(outputs, ACCEPTED_OUTPUT))
    except (Refused, Unreachable, NotUnderstood, TimeoutError):
        return replace(proof, drafted=None, accepted=None)
    return replace(proof, drafted=drafted, accepted=accepted)


def _sum(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else one + other


def _answered(outputs: Mapping[str, str], request: ProofRequest) -> Proof:
    text = outputs.get(request.output, "")
    if not text.strip():
        return _wrong(f"{request.model} answered without text in {request.output}; see the pod's log")
    return Proof(
        outcome=Outcome.SERVED,
        message=f"{request.model} answered with {len(text)} characters",
        text=text,
        drafted=_count(outputs, DRAFTED_OUTPUT),
        accepted=_count(outputs, ACCEPTED_OUTPUT),
    )


def _count(outputs: Mapping[str, str], output: str) -> int | None:
    try:
        return int(float(outputs[output]))
    except (ValueError, KeyError, OverflowError):
        # absent, or in a form that says nothing: the count is unknown
        return None


def _wrong(message: str) -> Proof:
    return Proof(outcome=Outcome.WRONG_ANSWER, message=message)


def _not_understood(endpoint: Endpoint, error: NotUnderstood) -> Proof:
    return _wrong(f"{endpoint.address()} doesn't answer as Triton does: {error}")


def _unreachable(endpoint: Endpoint, what: str) -> Proof:
    return Proof(
        outcome=Outcome.UNREACHABLE,
        message=f"{endpoint.address()} can't be reached from where the operator runs: {what}; allow it in the "
        "NetworkPolicy, or read the pods' own canary",
    )

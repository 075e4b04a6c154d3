"""The operator's own proof that a model serves: through its Service, one real request, one real answer."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Protocol

import aiohttp
import numpy as np
from tritonclient.http.aio import InferenceServerClient, InferInput
from tritonclient.utils import InferenceServerException, triton_to_np_dtype

from specdec_operator.triton.generate import generate

REVISION_PARAMETER = "specdec_revision"
DRAFTED_OUTPUT = "total_draft_tokens"
ACCEPTED_OUTPUT = "total_accepted_draft_tokens"

Scalar = str | int | float | bool


@dataclass(frozen=True)
class Endpoint:
    """Where a model serves over HTTP."""

    host: str
    port: int

    def address(self) -> str:
        """Host and port, without a scheme."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, kw_only=True)
class Tensor:
    """An input tensor.

    Attributes:
        name: the input's name.
        datatype: Triton's name: BYTES for text, INT32, FP32, BOOL, ...
        shape: its dimensions.
        values: its elements, row by row.
    """

    name: str
    datatype: str
    shape: tuple[int, ...]
    values: tuple[Scalar, ...]


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
    """Proves through tritonclient.

    Args:
        connect_seconds: for the first answer of the server.
        whole_seconds: for the proof, and again for the counts.
    """

    def __init__(self, *, connect_seconds: float = 5.0, whole_seconds: float = 60.0) -> None:
        self._connect_seconds = connect_seconds
        self._whole_seconds = whole_seconds

    async def prove(self, endpoint: Endpoint, request: ProofRequest) -> Proof:
        """Check readiness and revision, and ask for one answer."""
        client = InferenceServerClient(url=endpoint.address(), conn_timeout=self._whole_seconds)
        try:
            async with asyncio.timeout(self._whole_seconds):
                proof = await self._prove(client, endpoint, request)
            return await _counted(_Question(client, endpoint, request), proof, seconds=self._whole_seconds)
        except TimeoutError:
            return Proof(
                outcome=Outcome.WRONG_ANSWER,
                message=f"{request.model} gave no answer within {self._whole_seconds:g} s; see the pod's log",
            )
        except (aiohttp.ClientError, OSError) as error:
            return _unreachable(endpoint, error)
        finally:
            await client.close()

    async def _prove(self, client: InferenceServerClient, endpoint: Endpoint, request: ProofRequest) -> Proof:
        try:
            async with asyncio.timeout(self._connect_seconds):
                is_ready = await client.is_server_ready() and await client.is_model_ready(request.model)
        except TimeoutError as error:
            return _unreachable(endpoint, error)
        if not is_ready:
            message = f"{request.model} at {endpoint.address()} is not ready; see the pod's log"
            return Proof(outcome=Outcome.NOT_READY, message=message)
        try:
            stale = _stale_revision(await client.get_model_config(request.model), request)
            if stale:
                return stale
            return _answer(await _Question(client, endpoint, request)(request.tensors), request)
        except InferenceServerException as error:
            return _refused(request, error)
        except (ValueError, TypeError, KeyError, AttributeError, IndexError) as error:
            message = f"{endpoint.address()} doesn't answer as Triton does: {type(error).__name__}: {error}"
            return Proof(outcome=Outcome.WRONG_ANSWER, message=message)


@dataclass(frozen=True)
class _Question:
    """One request after another to one model, by the way that the model takes."""

    client: InferenceServerClient
    endpoint: Endpoint
    request: ProofRequest

    async def __call__(self, tensors: tuple[Tensor, ...]) -> Any:
        """An answer with `as_numpy`."""
        if self.request.decoupled:
            body = {tensor.name: tensor.values[0] for tensor in tensors}
            return await generate(self.endpoint.address(), self.request.model, body)
        return await self.client.infer(self.request.model, _inputs(tensors))


async def _counted(ask: _Question, proof: Proof, *, seconds: float) -> Proof:
    """The proof with the counts; where they are not to be had, what was answered stays proven."""
    try:
        async with asyncio.timeout(seconds):
            return await _with_counts(ask, proof)
    except (InferenceServerException, aiohttp.ClientError, OSError, ValueError, TypeError, KeyError):
        return replace(proof, drafted=None, accepted=None)


async def _with_counts(ask: _Question, proof: Proof) -> Proof:
    """The proof with the counts of all requests; None stays None where no answer counts."""
    drafted, accepted = proof.drafted, proof.accepted
    for tensors in ask.request.counted if proof.outcome is Outcome.SERVED else ():
        result = await ask(tensors)
        drafted = _sum(drafted, _count(result, DRAFTED_OUTPUT))
        accepted = _sum(accepted, _count(result, ACCEPTED_OUTPUT))
    return replace(proof, drafted=drafted, accepted=accepted)


def _sum(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else one + other


def _inputs(tensors: tuple[Tensor, ...]) -> list[InferInput]:
    inputs: list[InferInput] = []
    for tensor in tensors:
        values = [value.encode() if isinstance(value, str) else value for value in tensor.values]
        array = np.array(values, dtype=triton_to_np_dtype(tensor.datatype)).reshape(tensor.shape)
        infer_input = InferInput(tensor.name, list(tensor.shape), tensor.datatype)
        infer_input.set_data_from_numpy(array)
        inputs.append(infer_input)
    return inputs


def _stale_revision(config: Mapping[str, Any], request: ProofRequest) -> Proof | None:
    served = config.get("parameters", {}).get(REVISION_PARAMETER, {}).get("string_value", "")
    if request.revision in ("", served):
        return None
    message = f"{request.model} serves revision {served or '(none)'}, wanted is {request.revision}"
    return Proof(outcome=Outcome.STALE_REVISION, message=message)


def _answer(result: Any, request: ProofRequest) -> Proof:
    text = _text(result.as_numpy(request.output))
    if not text.strip():
        message = f"{request.model} answered without text in {request.output}; see the pod's log"
        return Proof(outcome=Outcome.WRONG_ANSWER, message=message)
    return Proof(
        outcome=Outcome.SERVED,
        message=f"{request.model} answered with {len(text)} characters",
        text=text,
        drafted=_count(result, DRAFTED_OUTPUT),
        accepted=_count(result, ACCEPTED_OUTPUT),
    )


def _text(array: Any) -> str:
    first = None if array is None or array.size == 0 else array.reshape(-1)[0]
    if isinstance(first, bytes):
        return first.decode("utf-8", errors="replace")
    return "" if first is None else str(first)


def _count(result: Any, output: str) -> int | None:
    try:
        return int(float(_text(result.as_numpy(output))))
    except (ValueError, TypeError, KeyError, OverflowError, InferenceServerException):
        # absent, or in a form that says nothing: the count is unknown
        return None


def _refused(request: ProofRequest, error: InferenceServerException) -> Proof:
    outcome = Outcome.NOT_READY if error.status() in ("502", "503", "504") else Outcome.WRONG_ANSWER
    return Proof(outcome=outcome, message=f"{request.model} refused the request: {error}")


def _unreachable(endpoint: Endpoint, error: Exception) -> Proof:
    what = str(error) or type(error).__name__
    return Proof(
        outcome=Outcome.UNREACHABLE,
        message=f"{endpoint.address()} can't be reached from where the operator runs: {what}; allow it in the "
        "NetworkPolicy, or read the pods' own canary",
    )

"""The engine backend: Triton's C++ backend `tensorrtllm` with engines built ahead.

One engine (alone, or with heads, n-grams or a recurrent drafter built into it): the ensemble answers, by one server, or
by one rank per GPU in leader mode; the business logic model in its place where streamed tokens are accumulated. A draft
and a target with an engine each: `tensorrt_llm_bls` answers; no ensemble, which would call the target alone. Rank 0
directs the ranks: with fast logits they are started with it, one MPI segment each, and participant ids tell which ranks
hold which engine; else it starts them itself.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from specdec_operator.runtimes.engine_model import engine
from specdec_operator.runtimes.engine_repository import (
    BLS,
    DRAFT,
    ENSEMBLE,
    TARGET,
    business_logic,
    ensemble,
    tokenizing,
)
from specdec_operator.runtimes.environment import mpi_environment, orchestrator_environment
from specdec_operator.runtimes.mpi_launch import Launch, launch
from specdec_operator.runtimes.serving import (
    CANARY_PROMPT,
    CANARY_TOKENS,
    EXIT_TIMEOUT_SECONDS,
    Derived,
    RequestTensor,
    ServingFiles,
    ServingRequest,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from specdec_operator.runtimes.table import EngineSupport

_DATATYPES: Final = {bool: "BOOL", int: "INT32", str: "BYTES"}


def render(request: ServingRequest) -> ServingFiles:
    """The files and the command of the engine backend.

    Raises:
        ValueError: The release has no engine path; resolution refuses that before.
    """
    support = request.release.tensorrt_engine
    if support is None:
        raise ValueError(f"release {request.release.name} has no engine backend")
    return _pair(request, support) if request.method == "DraftTarget" else _single(request, support)


def _single(request: ServingRequest, support: EngineSupport) -> ServingFiles:
    front = business_logic if request.serving.accumulate_tokens else ensemble
    how = Launch(world_size=request.world_size, engines=(TARGET,), log_verbosity=request.serving.log_verbosity)
    needed = _single_parameters(request)
    return ServingFiles(
        templates=(
            front(request, support),
            *tokenizing(request, support),
            engine(request, support, name=TARGET, role="target"),
        ),
        argv=launch(how),
        environment=mpi_environment(exit_timeout_seconds=EXIT_TIMEOUT_SECONDS) if request.world_size > 1 else {},
        endpoint_model=BLS if request.serving.accumulate_tokens else ENSEMBLE,
        tensors=(*_request(request), *_tensors(needed)),
        decoupled=request.serving.streaming,
        request_parameters=_published({name: value for name, value in needed.items() if name != "stream"}),
    )


def _single_parameters(request: ServingRequest) -> dict[str, int | bool]:
    greedy = {"top_k": 1} if request.method == "Medusa" else {}
    # The proof reads one answer; clients stream as they like.
    return {**greedy, **({"stream": False} if request.serving.streaming else {})}


def _pair(request: ServingRequest, support: EngineSupport) -> ServingFiles:
    spawns = request.logits_transfer != "Fast"
    gpus = {device for placed in request.devices.values() for device in placed.devices}
    needed = {
        "num_draft_tokens": request.draft_tokens,
        "use_draft_logits": request.logits_transfer != "Disabled",
        "stream": False,
    }
    how = Launch(
        world_size=request.world_size,
        engines=(TARGET, DRAFT),
        spawning_gpus=len(gpus) if spawns else None,
        log_verbosity=request.serving.log_verbosity,
    )
    return ServingFiles(
        templates=(
            *tokenizing(request, support),
            engine(request, support, name=TARGET, role="target"),
            engine(request, support, name=DRAFT, role="draft"),
            business_logic(request, support),
        ),
        argv=launch(how),
        environment={
            **mpi_environment(exit_timeout_seconds=EXIT_TIMEOUT_SECONDS),
            **orchestrator_environment(spawns=spawns),
        },
        endpoint_model=BLS,
        tensors=(*_request(request), *_tensors(needed)),
        request_parameters=_published(needed),
        derived=_derived(request),
    )


def _derived(request: ServingRequest) -> tuple[Derived, ...]:
    options, transfer = request.speculation.draft_target, request.logits_transfer
    place = "share a GPU" if request.shared_devices else "have GPUs of their own"
    found = []
    if transfer and (options is None or options.logits_transfer is None):
        name = "speculation.draftTarget.logitsTransfer"
        found.append(Derived(name=name, value=transfer, reason=f"draft and target {place}"))
    for role, tokens in sorted(request.kv_tokens.items()):
        if request.cache(role).max_tokens is None:
            name = "serving.draftKvCache.maxTokens" if role == "draft" else "serving.kvCache.maxTokens"
            reason = "what both models' weights leave of the GPU that they share"
            found.append(Derived(name=name, value=str(tokens), reason=reason))
    return tuple(found)


def _request(request: ServingRequest) -> tuple[RequestTensor, ...]:
    ends = {} if request.end_id is None else {"end_id": request.end_id, "pad_id": request.end_id}
    return _tensors({"text_input": CANARY_PROMPT, "max_tokens": CANARY_TOKENS, **ends})


def _tensors(values: Mapping[str, str | int | bool]) -> tuple[RequestTensor, ...]:
    return tuple(
        RequestTensor(name=name, datatype=_DATATYPES[type(value)], shape=(1, 1), values=(value,))
        for name, value in values.items()
    )


def _published(values: Mapping[str, int | bool]) -> dict[str, str]:
    return {name: json.dumps(value) for name, value in values.items()}

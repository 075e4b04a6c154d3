"""The engine backend: Triton's C++ backend `tensorrtllm` with engines built ahead.

One model: the ensemble answers, by one server, or by one rank per GPU in leader mode. A drafting pair with fast logits:
one MPI segment per rank, rank 0 the orchestrator, participant ids tell which ranks hold which engine, and
`tensorrt_llm_bls` answers; no ensemble, which would call the target alone.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from specdec_operator.runtimes.engine_repository import (
    BLS,
    DRAFT,
    ENSEMBLE,
    TARGET,
    business_logic,
    engine,
    ensemble,
    tokenizing,
)
from specdec_operator.runtimes.environment import mpi_environment, orchestrator_environment
from specdec_operator.runtimes.mpi_launch import launch
from specdec_operator.runtimes.serving import (
    CANARY_PROMPT,
    CANARY_TOKENS,
    EXIT_TIMEOUT_SECONDS,
    RequestTensor,
    ServingFiles,
    ServingRequest,
)

if TYPE_CHECKING:
    from specdec_operator.runtimes.table import EngineSupport


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
    return ServingFiles(
        templates=(
            ensemble(request, support),
            *tokenizing(request, support),
            engine(request, support, name=TARGET, role="target"),
        ),
        argv=launch(world_size=request.world_size, engines=(TARGET,)),
        environment=mpi_environment(exit_timeout_seconds=EXIT_TIMEOUT_SECONDS) if request.world_size > 1 else {},
        endpoint_model=ENSEMBLE,
        tensors=_request(request),
    )


def _pair(request: ServingRequest, support: EngineSupport) -> ServingFiles:
    draft_tokens = RequestTensor(
        name="num_draft_tokens", datatype="INT32", shape=(1, 1), values=(request.draft_tokens,)
    )
    logits = RequestTensor(name="use_draft_logits", datatype="BOOL", shape=(1, 1), values=(True,))
    stream = RequestTensor(name="stream", datatype="BOOL", shape=(1, 1), values=(False,))
    return ServingFiles(
        templates=(
            *tokenizing(request, support),
            engine(request, support, name=TARGET, role="target"),
            engine(request, support, name=DRAFT, role="draft"),
            business_logic(request, support),
        ),
        argv=launch(world_size=request.world_size, engines=(TARGET, DRAFT)),
        environment={
            **mpi_environment(exit_timeout_seconds=EXIT_TIMEOUT_SECONDS),
            **orchestrator_environment(),
        },
        endpoint_model=BLS,
        tensors=(*_request(request), draft_tokens, logits, stream),
        request_parameters={
            "num_draft_tokens": json.dumps(request.draft_tokens),
            "use_draft_logits": "true",
            "stream": "false",
        },
    )


def _request(request: ServingRequest) -> tuple[RequestTensor, ...]:
    ends = () if request.end_id is None else (("end_id", request.end_id), ("pad_id", request.end_id))
    return (
        RequestTensor(name="text_input", datatype="BYTES", shape=(1, 1), values=(CANARY_PROMPT,)),
        RequestTensor(name="max_tokens", datatype="INT32", shape=(1, 1), values=(CANARY_TOKENS,)),
        *(RequestTensor(name=name, datatype="INT32", shape=(1, 1), values=(value,)) for name, value in ends),
        RequestTensor(name="return_perf_metrics", datatype="BOOL", shape=(1, 1), values=(True,)),
    )

"""Triton's OpenAI front end: a process that holds the server inside it, in the place of `tritonserver`.

It sends what an ensemble or a vLLM model takes, and nothing that makes a draft model propose; planning refuses it
elsewhere. The KServe front ends stay open beside it, so canary, liveness and proof are the same; Triton's metrics move
to its own port.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from specdec_operator.runtimes import vllm
from specdec_operator.runtimes.release import MODEL_CONTROL
from specdec_operator.runtimes.serving import (
    GRPC_PORT,
    HTTP_PORT,
    MODEL_DIRECTORIES,
    OPEN_AI_PORT,
    REPOSITORY,
    ServingFiles,
    ServingRequest,
)

if TYPE_CHECKING:
    from specdec_operator.api.v1alpha1.runtime import Backend
    from specdec_operator.api.v1alpha1.serving import OpenAIFrontEnd

MAIN = "/opt/tritonserver/python/openai/openai_frontend/main.py"
OWN_DEFAULT_TOKENS = 16
"""What every front end takes for a request that gives no limit."""


def with_front_end(files: ServingFiles, request: ServingRequest, *, backend: Backend) -> ServingFiles:
    """The same model repository behind the front end; unchanged where a spec asks for none.

    Raises:
        ValueError: The backend's models are not the front end's; admission refuses that before.
    """
    asked = request.serving.open_ai_front_end
    if asked is None:
        return files
    drafts = backend == "TensorRTEngine" and request.method == "DraftTarget"
    if backend == "LLMAPI" or drafts or request.world_size != 1:
        where = f"{request.method} on {backend} in {request.world_size} processes"
        raise ValueError(f"the OpenAI front end does not serve {where}")
    orchestrator = {} if backend == "VLLM" else {"TRTLLM_ORCHESTRATOR": "1"}
    return replace(
        files,
        argv=_argv(request, asked, backend=backend),
        environment={**files.environment, **orchestrator},
        metrics_port=OPEN_AI_PORT,
        open_ai_port=OPEN_AI_PORT,
    )


def _argv(request: ServingRequest, asked: OpenAIFrontEnd, *, backend: Backend) -> tuple[str, ...]:
    verbosity, tokens = request.serving.log_verbosity, asked.default_max_tokens
    return (
        "python3",
        MAIN,
        f"--model-repository={REPOSITORY}",
        f"--tokenizer={MODEL_DIRECTORIES['target']}",
        f"--backend={'vllm' if backend == 'VLLM' else 'tensorrtllm'}",
        "--host=0.0.0.0",
        f"--openai-port={OPEN_AI_PORT}",
        "--enable-kserve-frontends",
        f"--kserve-http-port={HTTP_PORT}",
        f"--kserve-grpc-port={GRPC_PORT}",
        *((f"--tritonserver-log-verbose-level={verbosity}",) if verbosity else ()),
        # Not every front end knows the option; the default of all is the same.
        *((f"--default-max-tokens={tokens}",) if tokens != OWN_DEFAULT_TOKENS else ()),
        *(vllm.control_arguments() if backend == "VLLM" and request.release.front_end_has(MODEL_CONTROL) else ()),
    )

"""The LLM API backend: TensorRT-LLM's PyTorch path inside Triton's Python backend. No build; no MPI of ours.

`decoupled` and `max_batch_size` are written into config.pbtxt and model.yaml: servers started without
auto-completion read them from the first only, others from the second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from specdec_operator.pod.inputs import ModelTemplate
from specdec_operator.runtimes.environment import mpi_environment
from specdec_operator.runtimes.serving import (
    CANARY_PROMPT,
    CANARY_TOKENS,
    EXIT_TIMEOUT_SECONDS,
    MODEL_DIRECTORIES,
    REPOSITORY,
    SERVER,
    RequestTensor,
    ServingFiles,
    ServingRequest,
    port_arguments,
)

if TYPE_CHECKING:
    from specdec_operator.runtimes.table import LlmApiSupport

MODEL = "tensorrt_llm"
_REQUEST_BATCH = 0
"""Triton's own batching is off: the LLM API batches in flight and takes one prompt per request."""


def render(request: ServingRequest) -> ServingFiles:
    """The files and the command of the LLM API backend.

    Raises:
        ValueError: The release has no LLM API; resolution refuses that before.
    """
    support = request.release.llm_api
    if support is None:
        raise ValueError(f"release {request.release.name} has no LLM API")
    template = ModelTemplate(
        name=MODEL,
        candidates=tuple(support.template),
        fields={"max_batch_size": _REQUEST_BATCH, "model_transaction_policy.decoupled": False},
        files={"1/model.yaml": yaml.safe_dump(_model(request, support), sort_keys=False)},
    )
    return ServingFiles(
        templates=(template,),
        argv=(
            SERVER,
            f"--model-repository={REPOSITORY}",
            f"--exit-timeout-secs={EXIT_TIMEOUT_SECONDS}",
            *port_arguments(),
            "--disable-auto-complete-config",
        ),
        # The LLM API starts its workers through MPI itself.
        environment=mpi_environment(exit_timeout_seconds=EXIT_TIMEOUT_SECONDS),
        endpoint_model=MODEL,
        tensors=(
            RequestTensor(name="text_input", datatype="BYTES", shape=(1,), values=(CANARY_PROMPT,)),
            RequestTensor(name="sampling_param_max_tokens", datatype="INT32", shape=(1,), values=(CANARY_TOKENS,)),
            RequestTensor(name="sampling_param_temperature", datatype="FP32", shape=(1,), values=(0.0,)),
            RequestTensor(name="sampling_param_return_perf_metrics", datatype="BOOL", shape=(1,), values=(True,)),
        ),
    )


def _model(request: ServingRequest, support: LlmApiSupport) -> dict[str, Any]:
    cache = request.serving.kv_cache
    model: dict[str, Any] = {
        "model": MODEL_DIRECTORIES["target"],
        "backend": "pytorch",
        "tensor_parallel_size": len(request.devices["target"].devices),
        "pipeline_parallel_size": 1,
        "max_batch_size": request.batch,
        "kv_cache_config": {
            "enable_block_reuse": cache.reuse,
            "free_gpu_memory_fraction": (cache.free_gpu_memory_percent or 80) / 100,
        },
        "triton_config": {"max_batch_size": _REQUEST_BATCH, "decoupled": False},
    }
    if request.method == "Eagle3":
        model["speculative_config"] = {
            "decoding_type": support.eagle3_decoding_type,
            support.draft_model_key: MODEL_DIRECTORIES["draft"],
            "max_draft_len": request.draft_tokens,
        }
    return model

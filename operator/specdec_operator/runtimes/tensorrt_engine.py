"""The engine backend: Triton's C++ backend `tensorrtllm` with engines built ahead.

One model: the ensemble answers, by one server, or by one rank per GPU in leader mode. A drafting pair with fast logits:
one MPI segment per rank, rank 0 the orchestrator, participant ids tell which ranks hold which engine, and
`tensorrt_llm_bls` answers; no ensemble, which would call the target alone. Segments are as NVIDIA's launch script makes
them (triton_backend/scripts/launch_triton_server.py with --multi-model --disable-spawn-processes).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from specdec_operator.pod.inputs import ModelTemplate
from specdec_operator.runtimes.environment import mpi_environment, orchestrator_environment
from specdec_operator.runtimes.serving import (
    CANARY_PROMPT,
    CANARY_TOKENS,
    ENGINE_DIRECTORIES,
    EXIT_TIMEOUT_SECONDS,
    MODEL_DIRECTORIES,
    REPOSITORY,
    SERVER,
    PlacedDevices,
    RequestTensor,
    ServingFiles,
    ServingRequest,
    port_arguments,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from specdec_operator.runtimes.table import EngineSupport

TARGET, DRAFT, BLS, ENSEMBLE = "tensorrt_llm", "tensorrt_llm_draft", "tensorrt_llm_bls", "ensemble"
_LOGITS = {"float32": "TYPE_FP32", "float16": "TYPE_FP16"}

_UNSET_ENGINE = (
    "encoder_engine_dir",
    "max_attention_window_size",
    "sink_token_length",
    "max_tokens_in_paged_kv_cache",
    "cross_kv_cache_fraction",
    "kv_cache_host_memory_bytes",
    "kv_cache_onboard_blocks",
    "enable_trt_overlap",
    "cancellation_check_period_ms",
    "stats_check_period_ms",
    "iter_stats_max_iterations",
    "request_stats_max_iterations",
    "normalize_log_probs",
    "enable_chunked_context",
    "decoding_mode",
    "medusa_choices",
    "eagle_choices",
    "lookahead_window_size",
    "lookahead_ngram_size",
    "lookahead_verification_set_size",
    "lora_cache_optimal_adapter_size",
    "lora_cache_max_adapter_size",
    "lora_cache_gpu_memory_fraction",
    "lora_cache_host_memory_bytes",
    "lora_prefetch_dir",
    "gpu_weights_percent",
    "enable_context_fmha_fp32_acc",
    "multi_block_mode",
    "cuda_graph_mode",
    "cuda_graph_cache_size",
    "guided_decoding_backend",
    "xgrammar_tokenizer_info_path",
    "num_nodes",
    "participant_ids",
    "speculative_decoding_fast_logits",
)
"""Variables of the engine model's template that may stay empty: the backend then takes its own default."""


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
    target = _engine(request, support, name=TARGET, role="target", extra={})
    argv = launch(world_size=request.world_size, engines=(TARGET,))
    return ServingFiles(
        templates=(
            _template(support, ENSEMBLE, values={**_batch(request), **_logits(request)}),
            *_tokenizing(request, support),
            target,
        ),
        argv=argv,
        environment=mpi_environment(exit_timeout_seconds=EXIT_TIMEOUT_SECONDS) if request.world_size > 1 else {},
        endpoint_model=ENSEMBLE,
        tensors=_request(request),
    )


def _pair(request: ServingRequest, support: EngineSupport) -> ServingFiles:
    fast = {"speculative_decoding_fast_logits": "true"}
    bls = _template(
        support,
        BLS,
        values={
            **_batch(request),
            **_logits(request),
            "decoupled_mode": "false",
            "bls_instance_count": str(request.batch),
            "accumulate_tokens": "false",
            "tensorrt_llm_model_name": TARGET,
            "tensorrt_llm_draft_model_name": DRAFT,
        },
        optional={"prompt_embedding_table_data_type": "TYPE_FP16"},
        unset=("multimodal_encoders_name",),
    )
    draft_tokens = RequestTensor(
        name="num_draft_tokens", datatype="INT32", shape=(1, 1), values=(request.draft_tokens,)
    )
    logits = RequestTensor(name="use_draft_logits", datatype="BOOL", shape=(1, 1), values=(True,))
    stream = RequestTensor(name="stream", datatype="BOOL", shape=(1, 1), values=(False,))
    return ServingFiles(
        templates=(
            *_tokenizing(request, support),
            _engine(request, support, name=TARGET, role="target", extra=fast),
            _engine(request, support, name=DRAFT, role="draft", extra=fast),
            bls,
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


def launch(*, world_size: int, engines: tuple[str, ...]) -> tuple[str, ...]:
    """The command: the server itself for one process, else one `mpirun` segment per rank.

    Every rank gets the same ports: those above 0 block while their models load and never open them.
    """
    segments = [_segment(rank, engines) for rank in range(world_size)]
    if world_size == 1:
        return segments[0]
    argv = ["mpirun", "--allow-run-as-root"]
    for index, segment in enumerate(segments):
        argv += [*([":"] if index else []), "-n", "1", *segment]
    return tuple(argv)


def _segment(rank: int, engines: tuple[str, ...]) -> tuple[str, ...]:
    explicit = ("--model-control-mode=explicit", *(f"--load-model={name}" for name in engines)) if rank else ()
    return (
        SERVER,
        f"--model-repository={REPOSITORY}",
        f"--exit-timeout-secs={EXIT_TIMEOUT_SECONDS}",
        *port_arguments(),
        *explicit,
        "--disable-auto-complete-config",
        f"--backend-config=python,shm-region-prefix-name=prefix{rank}_",
    )


def _engine(
    request: ServingRequest, support: EngineSupport, *, name: str, role: str, extra: Mapping[str, str]
) -> ModelTemplate:
    placed = request.devices[role]
    cache = request.serving.kv_cache
    values = {
        **_batch(request),
        **_logits(request),
        **_queue(request),
        "triton_backend": "tensorrtllm",
        "decoupled_mode": "false",
        "engine_dir": ENGINE_DIRECTORIES[role],
        "tokenizer_dir": MODEL_DIRECTORIES["target"],
        "batching_strategy": "inflight_fused_batching",
        "batch_scheduler_policy": "guaranteed_no_evict",
        "encoder_input_features_data_type": "TYPE_FP16",
        "prompt_embedding_table_data_type": "TYPE_FP16",
        "max_beam_width": "1",
        "kv_cache_free_gpu_mem_fraction": f"{cache.free_gpu_memory_percent / 100:.2f}",
        "enable_kv_cache_reuse": "true" if cache.reuse else "false",
        "exclude_input_in_output": "false" if request.method == "DraftTarget" else "true",
        **_ranks(placed, world_size=request.world_size, method=request.method),
        **extra,
    }
    return _template(
        support,
        name,
        source=TARGET,
        values=values,
        unset=tuple(variable for variable in _UNSET_ENGINE if variable not in values),
        expected={"gpt_model_path": ENGINE_DIRECTORIES[role], "gpu_device_ids": values["gpu_device_ids"]},
    )


def _ranks(placed: PlacedDevices, *, world_size: int, method: str) -> dict[str, str]:
    devices = {"gpu_device_ids": ",".join(str(device) for device in placed.devices)}
    if method != "DraftTarget" or world_size == 1:
        return devices
    return {**devices, "participant_ids": ",".join(str(rank) for rank in placed.participant_ids)}


def _tokenizing(request: ServingRequest, support: EngineSupport) -> tuple[ModelTemplate, ModelTemplate]:
    tokenizer = {"tokenizer_dir": MODEL_DIRECTORIES["target"]}
    instances = str(request.batch if request.method == "DraftTarget" else 1)
    return (
        _template(
            support,
            "preprocessing",
            values={
                **_batch(request),
                **_queue(request),
                **tokenizer,
                "engine_dir": ENGINE_DIRECTORIES["target"],
                "preprocessing_instance_count": instances,
                "add_special_tokens": "true",
            },
            unset=("multimodal_model_path", "max_num_images", "hf_model_path"),
        ),
        _template(
            support,
            "postprocessing",
            values={
                **_batch(request),
                **tokenizer,
                "postprocessing_instance_count": instances,
                "skip_special_tokens": "true",
            },
        ),
    )


def _template(
    support: EngineSupport,
    name: str,
    *,
    values: Mapping[str, str],
    source: str | None = None,
    optional: Mapping[str, str] | None = None,
    unset: tuple[str, ...] = (),
    expected: Mapping[str, str] | None = None,
) -> ModelTemplate:
    return ModelTemplate(
        name=name,
        candidates=tuple(f"{root}/{source or name}" for root in support.templates),
        values=dict(values),
        optional_values=dict(optional or {}),
        unset=unset,
        expected_parameters=dict(expected or {}),
    )


def _batch(request: ServingRequest) -> dict[str, str]:
    return {"triton_max_batch_size": str(request.batch)}


def _logits(request: ServingRequest) -> dict[str, str]:
    return {"logits_datatype": _LOGITS[request.logits_data_type]}


def _queue(request: ServingRequest) -> dict[str, str]:
    return {
        "max_queue_delay_microseconds": str(request.serving.max_queue_delay_microseconds),
        "max_queue_size": "0",
    }


def _request(request: ServingRequest) -> tuple[RequestTensor, ...]:
    ends = () if request.end_id is None else (("end_id", request.end_id), ("pad_id", request.end_id))
    return (
        RequestTensor(name="text_input", datatype="BYTES", shape=(1, 1), values=(CANARY_PROMPT,)),
        RequestTensor(name="max_tokens", datatype="INT32", shape=(1, 1), values=(CANARY_TOKENS,)),
        *(RequestTensor(name=name, datatype="INT32", shape=(1, 1), values=(value,)) for name, value in ends),
        RequestTensor(name="return_perf_metrics", datatype="BOOL", shape=(1, 1), values=(True,)),
    )

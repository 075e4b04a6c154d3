"""The engine backend's model repository: the image's templates, each with every variable's value.

Each variable of a template has a value here, or is declared to stay empty; the assemble program refuses one that it
does not find in either list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from specdec_operator.pod.inputs import ModelTemplate
from specdec_operator.runtimes.serving import (
    ENGINE_DIRECTORIES,
    MODEL_DIRECTORIES,
    PlacedDevices,
    ServingRequest,
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


def ensemble(request: ServingRequest, support: EngineSupport) -> ModelTemplate:
    """The model that calls preprocessing, one engine and postprocessing in turn."""
    return _template(support, ENSEMBLE, values={**_batch(request), **_logits(request)})


def business_logic(request: ServingRequest, support: EngineSupport) -> ModelTemplate:
    """The model that lets the draft propose and the target verify (Triton's business logic scripting)."""
    return _template(
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


def engine(request: ServingRequest, support: EngineSupport, *, name: str, role: str) -> ModelTemplate:
    """The model that runs the engine of a role."""
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
        "kv_cache_free_gpu_mem_fraction": f"{(cache.free_gpu_memory_percent or 80) / 100:.2f}",
        "enable_kv_cache_reuse": "true" if cache.reuse else "false",
        "exclude_input_in_output": "false" if request.method == "DraftTarget" else "true",
        **_ranks(placed, world_size=request.world_size, method=request.method),
        **({"speculative_decoding_fast_logits": "true"} if request.method == "DraftTarget" else {}),
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


def tokenizing(request: ServingRequest, support: EngineSupport) -> tuple[ModelTemplate, ModelTemplate]:
    """The models that turn text into tokens and back."""
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

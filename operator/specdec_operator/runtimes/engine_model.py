"""The engine backend's model that runs one engine: every variable of its template.

What a spec asks for must be in the template, or the assemble program refuses: the value would be lost. What is only
this operator's choice goes to the variables that the release's template happens to have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from specdec_operator.api.v1alpha1.speculation import LookaheadOptions
from specdec_operator.runtimes.engine_repository import TARGET, batch, logits, template
from specdec_operator.runtimes.serving import ENGINE_DIRECTORIES, MODEL_DIRECTORIES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from specdec_operator.api.v1alpha1.speculation import Method
    from specdec_operator.pod.inputs import ModelTemplate
    from specdec_operator.runtimes.serving import ServingRequest
    from specdec_operator.runtimes.table import EngineSupport

_POLICIES: Final = {"GuaranteedNoEvict": "guaranteed_no_evict", "MaxUtilization": "max_utilization"}
_SAMPLING_MODES: Final = {"TopK": "top_k", "TopP": "top_p", "TopKTopP": "top_k_top_p"}
_METHOD_MODES: Final[Mapping[Method, str]] = {
    "Eagle": "eagle",
    "Medusa": "medusa",
    "Lookahead": "lookahead",
    "ReDrafter": "redrafter",
}
"""MEDUSA with a sampling mode answers with nothing at all (TensorRT-LLM issue 1449)."""
_CHOICES: Final[Mapping[Method, str]] = {"Eagle": "eagle_choices", "Medusa": "medusa_choices"}

_UNSET: Final = (
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
    "recv_poll_period_ms",
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
"""Variables of any release's template that may stay empty: the backend then takes its own default."""

_FRACTION = 80
_FRACTION_BESIDE_TOKENS = 90
"""TensorRT-LLM's own default; where tokens are derived they are the bound, not the fraction."""


def engine(request: ServingRequest, support: EngineSupport, *, name: str, role: str) -> ModelTemplate:
    """The model that runs the engine of a role."""
    values = {
        **batch(request),
        **logits(request),
        "triton_backend": "tensorrtllm",
        "decoupled_mode": "true" if request.serving.streaming else "false",
        "max_queue_delay_microseconds": str(request.serving.max_queue_delay_microseconds),
        "engine_dir": ENGINE_DIRECTORIES[role],
        "batching_strategy": "inflight_fused_batching",
        "batch_scheduler_policy": _POLICIES[request.serving.scheduler_policy],
        "encoder_input_features_data_type": "TYPE_FP16",
        "max_beam_width": "1",
        "exclude_input_in_output": "false" if request.method == "DraftTarget" else "true",
        **_cache(request, role),
        **_options(request),
        **_decoding(request),
        **_ranks(request, role),
    }
    optional = {
        "prompt_embedding_table_data_type": "TYPE_FP16",
        "tokenizer_dir": MODEL_DIRECTORIES["target"],
        **({} if "max_queue_size" in values else {"max_queue_size": "0"}),
    }
    return template(
        support,
        name,
        source=TARGET,
        values=values,
        optional=optional,
        unset=tuple(variable for variable in _UNSET if variable not in values),
        expected={"gpt_model_path": ENGINE_DIRECTORIES[role], "gpu_device_ids": values["gpu_device_ids"]},
    )


def choices_text(tree: tuple[tuple[int, ...], ...]) -> str:
    """A tree as the backend reads it: `{0}, {1}, {0, 0}`."""
    return ", ".join("{" + ", ".join(map(str, path)) + "}" for path in tree)


def _cache(request: ServingRequest, role: str) -> dict[str, str]:
    cache, derived = request.cache(role), request.kv_tokens.get(role)
    percent = cache.free_gpu_memory_percent or (_FRACTION_BESIDE_TOKENS if derived else _FRACTION)
    tokens, host = derived or cache.max_tokens, request.host_cache_bytes.get(role)
    return {
        "kv_cache_free_gpu_mem_fraction": f"{percent / 100:.2f}",
        "enable_kv_cache_reuse": "true" if cache.reuse else "false",
        **({"max_tokens_in_paged_kv_cache": str(tokens)} if tokens else {}),
        **({"kv_cache_host_memory_bytes": str(host)} if host else {}),
    }


def _options(request: ServingRequest) -> dict[str, str]:
    serving = request.serving
    asked = {
        "max_attention_window_size": serving.max_attention_window,
        "normalize_log_probs": serving.normalize_log_probabilities,
        "enable_chunked_context": serving.chunked_context,
        "max_queue_size": serving.max_queue_size or None,
    }
    return {variable: str(value).lower() for variable, value in asked.items() if value is not None}


def _decoding(request: ServingRequest) -> dict[str, str]:
    chosen = request.serving.decoding_mode
    mode = _METHOD_MODES.get(request.method) or (_SAMPLING_MODES[chosen] if chosen else None)
    found = {"decoding_mode": mode} if mode else {}
    if request.choices is not None and request.method in _CHOICES:
        found[_CHOICES[request.method]] = choices_text(request.choices)
    return found | _lookahead(request)


def _lookahead(request: ServingRequest) -> dict[str, str]:
    if request.method != "Lookahead":
        return {}
    options = request.speculation.lookahead or LookaheadOptions()
    return {
        "lookahead_window_size": str(options.window_size),
        "lookahead_ngram_size": str(options.n_gram_size),
        "lookahead_verification_set_size": str(options.verification_set_size),
    }


def _ranks(request: ServingRequest, role: str) -> dict[str, str]:
    placed = request.devices[role]
    devices = {"gpu_device_ids": ",".join(str(device) for device in placed.devices)}
    if request.logits_transfer != "Fast":
        return devices
    return {
        **devices,
        "participant_ids": ",".join(str(rank) for rank in placed.participant_ids),
        "speculative_decoding_fast_logits": "true",
    }

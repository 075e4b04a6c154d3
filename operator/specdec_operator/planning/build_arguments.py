"""Options of trtllm-build that a user may not set, and what to set in their place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specdec_operator.planning.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModelSpec

_FIELDS: Mapping[str, str] = {
    "max_batch_size": "spec.engine.maxBatchSize",
    "max_input_len": "spec.engine.maxInputLength",
    "max_seq_len": "spec.engine.maxSequenceLength",
    "max_decoder_seq_len": "spec.engine.maxSequenceLength",
    "max_num_tokens": "spec.engine.maxBatchedTokens",
    "gemm_plugin": "spec.engine.dataType",
    "logits_dtype": "spec.engine.logitsDataType",
    "speculative_decoding_mode": "spec.speculation.method",
    "max_draft_len": "spec.speculation",
    "use_fp8_context_fmha": "spec.target.quantization",
    "tp_size": "spec.target.parallelism.tensor",
    "pp_size": "spec.target.parallelism.pipeline",
    "auto_parallel": "spec.target.parallelism",
}
"""Options whose value follows from a field."""
_FIXED: Mapping[str, str] = {
    "checkpoint_dir": "the operator places the checkpoint",
    "output_dir": "the operator places the engine",
    "model_config": "the checkpoint decides it",
    "build_config": "the operator gives each option by itself",
    "model_cls_file": "no code is loaded into a build",
    "model_cls_name": "no code is loaded into a build",
    "max_beam_width": "it is always 1",
    "kv_cache_type": "it is always paged",
    "paged_kv_cache": "the cache is always paged",
    "use_paged_context_fmha": "it follows from the type of the key-value cache",
    "remove_input_padding": "in-flight batching needs it enabled, and it is",
    "context_fmha": "attention over a paged context needs it enabled, and it is",
    "dry_run": "nothing would be built",
    "help": "nothing would be built",
    "input_timing_cache": "a build reads nothing but the models",
    "output_timing_cache": "a build writes nothing beside the engine",
    "visualize_network": "a build writes nothing beside the engine",
    "lora_plugin": "LoRA is not served",
    "lora_dir": "LoRA is not served",
    "lora_ckpt_source": "LoRA is not served",
    "lora_target_modules": "LoRA is not served",
    "max_lora_rank": "LoRA is not served",
    "max_prompt_embedding_table_size": "multimodal models are not served",
    "max_multimodal_len": "multimodal models are not served",
    "max_encoder_input_len": "encoder-decoder models are not served",
}
"""Options that have one value here, or none."""
_CONTEXT_LOGITS = ("gather_context_logits", "gather_all_token_logits")


def build_argument_refusals(spec: SpeculativeModelSpec) -> list[Refusal]:
    """Options that are the operator's, and those that contradict the method."""
    given = spec.engine.extra_build_arguments if spec.engine else {}
    return [refusal for name in sorted(given) for refusal in _refusal(name, spec)]


def _refusal(name: str, spec: SpeculativeModelSpec) -> list[Refusal]:
    path = f"spec.engine.extraBuildArguments[{name}]"
    whole = next((owned for owned in (*_FIELDS, *_FIXED) if owned.startswith(name)), name)
    if whole != name and name not in (*_FIELDS, *_FIXED):
        # The program takes the beginning of an option for the option.
        message = f"--{name} may be read as --{whole}, which is the operator's: remove it"
        return [Refusal(reason="BuildArgumentOwned", path=path, message=message)]
    if name in _FIELDS:
        message = f"the operator sets --{name}: remove it, and use {_FIELDS[name]}"
        return [Refusal(reason="BuildArgumentOwned", path=path, message=message)]
    if name in _FIXED:
        message = f"--{name} is the operator's: remove it ({_FIXED[name]})"
        return [Refusal(reason="BuildArgumentOwned", path=path, message=message)]
    if name in _CONTEXT_LOGITS and spec.speculation.method != "None":
        message = f"--{name} can't be built together with drafted tokens: remove it, or use the method None"
        return [Refusal(reason="BuildArgumentContradiction", path=path, message=message)]
    return []

"""The stand-in of trtllm-build."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from testbed.runtime.simulator.checkpoint import Checkpoint, read_checkpoint
from testbed.runtime.simulator.contracts import declared, option_parser
from testbed.runtime.simulator.engine import BuildLimits, write_engine
from testbed.runtime.simulator.errors import CheckpointError
from testbed.runtime.simulator.gpus import require_gpus
from testbed.runtime.simulator.tool_log import say

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

_LENGTH_OF_FLAG: Final = ("draft_tokens_external", "lookahead_decoding")
_SWITCHES: Final[Mapping[str, str]] = {
    "remove_input_padding": "enable",
    "context_fmha": "enable",
    "use_paged_context_fmha": "enable",
    "use_fp8_context_fmha": "enable",
    "multiple_profiles": "disable",
    "reduce_fusion": "disable",
    "user_buffer": "disable",
}
_PLUGINS: Final = ("gemm_plugin", "gpt_attention_plugin", "nccl_plugin", "moe_plugin", "gemm_swiglu_plugin")
_DEFAULTS: Final[Mapping[str, object]] = {
    **_SWITCHES,
    **dict.fromkeys(_PLUGINS, "auto"),
    "output_dir": "engine_outputs",
    "max_batch_size": 2048,
    "max_input_len": 1024,
    "max_num_tokens": 8192,
    "max_beam_width": 1,
    "max_draft_len": 0,
    "tokens_per_block": 32,
}


def trtllm_build(arguments: Sequence[str], environment: Mapping[str, str]) -> None:
    """Build an engine directory from a checkpoint.

    Raises:
        NoGPUError: no GPU is visible.
        CheckpointError: no checkpoint is named, it is unreadable, or flags contradict each other.
        RuntimeError: context logits are asked for together with draft tokens, as in the original.
    """
    known = declared("engine/trtllm_build.yaml", environment)
    chosen = option_parser("trtllm-build", known, _DEFAULTS).parse_args(arguments)
    gpu = require_gpus(environment, program="trtllm-build")[0]
    if not chosen.checkpoint_dir:
        raise CheckpointError("the stand-in builds from a checkpoint alone: give --checkpoint_dir")
    checkpoint = read_checkpoint(Path(chosen.checkpoint_dir))
    limits = _limits(chosen, checkpoint)
    plugins = {name: getattr(chosen, name) == "enable" for name in _SWITCHES}
    plugin_config = {name: getattr(chosen, name) for name in _PLUGINS} | plugins
    plugin_config["tokens_per_block"] = chosen.tokens_per_block
    overrides = {"logits_dtype": chosen.logits_dtype or "float32", "plugin_config": plugin_config}
    for rank in range(checkpoint.parallelism.ranks):
        say(f"Building engine of rank {rank} of {checkpoint.parallelism.ranks} for {gpu.product}")
    if not chosen.dry_run:
        write_engine(Path(chosen.output_dir), checkpoint, limits, gpu=gpu.product, overrides=overrides)
    say(f"Engine serialized to {chosen.output_dir}")


def _limits(chosen: argparse.Namespace, checkpoint: Checkpoint) -> BuildLimits:
    mode = chosen.speculative_decoding_mode or "none"
    draft_len = _draft_length(chosen.max_draft_len, mode, checkpoint)
    if draft_len > 0 and (chosen.gather_context_logits or chosen.gather_all_token_logits):
        raise RuntimeError("Gathering context logits is not supported with speculative decoding (max_draft_len > 0)")
    if mode != "none" and chosen.max_beam_width > 1:
        raise CheckpointError("--max_beam_width must be 1 with --speculative_decoding_mode")
    longest = chosen.max_seq_len or checkpoint.config.max_position_embeddings
    if chosen.max_input_len > longest:
        raise CheckpointError(f"max_input_len ({chosen.max_input_len}) is larger than max_seq_len ({longest})")
    return BuildLimits(
        max_batch_size=chosen.max_batch_size,
        max_input_len=chosen.max_input_len,
        max_seq_len=longest,
        max_num_tokens=chosen.max_num_tokens,
        max_beam_width=chosen.max_beam_width,
        max_draft_len=draft_len,
        speculative_decoding_mode=mode,
    )


def _draft_length(flag: int, mode: str, checkpoint: Checkpoint) -> int:
    """Return the draft length: of the flag, or of the checkpoint where that brings its own heads or drafter."""
    speculation = checkpoint.speculation
    own = speculation.mode if speculation else None
    if (own or mode) != mode or (own is None and mode not in ("none", *_LENGTH_OF_FLAG)):
        raise CheckpointError(
            f"--speculative_decoding_mode {mode}: the checkpoint is one for {own or 'none or draft_tokens_external'}; "
            "convert it with that method's convert_checkpoint.py"
        )
    if speculation is not None:
        if flag not in (0, speculation.max_draft_len):
            raise CheckpointError(
                f"--max_draft_len {flag}: the checkpoint was converted for {speculation.max_draft_len} draft tokens"
            )
        return speculation.max_draft_len
    if mode == "draft_tokens_external" and flag < 1:
        raise CheckpointError("--max_draft_len must be given with --speculative_decoding_mode draft_tokens_external")
    return flag

"""The stand-in of trtllm-build."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Final

from testbed.runtime.simulator.checkpoint import Checkpoint, read_checkpoint
from testbed.runtime.simulator.engine import SPECULATIVE_MODES, BuildLimits, write_engine
from testbed.runtime.simulator.errors import CheckpointError
from testbed.runtime.simulator.gpus import require_gpus
from testbed.runtime.simulator.tool_log import say

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_LENGTH_OF_FLAG: Final = ("draft_tokens_external", "lookahead_decoding")
_SWITCH: Final = ("enable", "disable")
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


def trtllm_build(arguments: Sequence[str], environment: Mapping[str, str]) -> None:
    """Build an engine directory from a checkpoint.

    Raises:
        NoGPUError: no GPU is visible.
        CheckpointError: the checkpoint is unreadable, or flags contradict each other.
        RuntimeError: context logits are asked for together with draft tokens, as in the original.
    """
    chosen = _parser().parse_args(arguments)
    gpu = require_gpus(environment, program="trtllm-build")[0]
    checkpoint = read_checkpoint(chosen.checkpoint_dir)
    limits = _limits(chosen, checkpoint)
    plugins = {name: getattr(chosen, name) == "enable" for name in _SWITCHES}
    plugin_config = {name: getattr(chosen, name) for name in _PLUGINS} | plugins
    plugin_config["tokens_per_block"] = chosen.tokens_per_block
    overrides = {"logits_dtype": chosen.logits_dtype or "float32", "plugin_config": plugin_config}
    for rank in range(checkpoint.parallelism.ranks):
        say(f"Building engine of rank {rank} of {checkpoint.parallelism.ranks} for {gpu.product}")
    if not chosen.dry_run:
        write_engine(chosen.output_dir, checkpoint, limits, gpu=gpu.product, overrides=overrides)
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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="trtllm-build", allow_abbrev=False)
    parser.add_argument("--checkpoint_dir", type=Path, required=True)
    parser.add_argument("--output_dir", type=Path, default=Path("engine_outputs"))
    for flag, default in (("max_batch_size", 2048), ("max_input_len", 1024), ("max_num_tokens", 8192)):
        parser.add_argument(f"--{flag}", type=int, default=default)
    parser.add_argument("--opt_num_tokens", type=int)
    parser.add_argument("--max_seq_len", "--max_decoder_seq_len", type=int, dest="max_seq_len")
    parser.add_argument("--max_beam_width", type=int, default=1)
    parser.add_argument("--kv_cache_type", default="paged", choices=["continuous", "paged", "disabled"])
    modes = [mode for mode in SPECULATIVE_MODES if mode != "none"]
    parser.add_argument("--speculative_decoding_mode", choices=modes)
    parser.add_argument("--max_draft_len", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--tokens_per_block", type=int, default=32)
    parser.add_argument("--logits_dtype", choices=["float16", "float32"])
    _add_switches(parser)
    return parser


def _add_switches(parser: argparse.ArgumentParser) -> None:
    for name, default in _SWITCHES.items():
        parser.add_argument(f"--{name}", default=default, choices=_SWITCH)
    for name in _PLUGINS:
        parser.add_argument(f"--{name}", default="auto")
    logits = ("gather_context_logits", "gather_generation_logits", "gather_all_token_logits")
    for name in (*logits, "weight_streaming", "fast_build", "dry_run", "monitor_memory"):
        parser.add_argument(f"--{name}", action="store_true")
    for name in ("input_timing_cache", "output_timing_cache"):
        parser.add_argument(f"--{name}", type=Path)
    parser.add_argument("--log_level", default="info")

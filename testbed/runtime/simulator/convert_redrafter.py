"""The stand-in of examples/redrafter/convert_checkpoint.py: a drafter is added to a base model's checkpoint."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.runtime.inference.errors import InferenceError
from testbed.runtime.inference.llama import LlamaModel
from testbed.runtime.inference.redrafter import RedrafterConfig, RedrafterModel
from testbed.runtime.inference.safetensors import read_directory
from testbed.runtime.simulator.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from testbed.runtime.simulator.engine_speculation import RedrafterSpeculation, with_prefix
from testbed.runtime.simulator.errors import CheckpointError
from testbed.runtime.simulator.gpus import require_gpus
from testbed.runtime.simulator.tool_log import say

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def convert_redrafter(arguments: Sequence[str], environment: Mapping[str, str]) -> None:
    """Add a drafter to a converted base model.

    Raises:
        NoGPUError: no GPU is visible.
        CheckpointError: a directory can't be read, they don't fit each other, or the base is split otherwise.
    """
    chosen = _parser().parse_args(arguments)
    require_gpus(environment, program="convert_checkpoint.py")
    base = read_checkpoint(chosen.base_model_checkpoint_dir)
    if (base.parallelism.tensor, base.parallelism.pipeline) != (chosen.tp_size, 1):
        raise CheckpointError(
            f"--tp_size {chosen.tp_size}: the base model's checkpoint has tp_size {base.parallelism.tensor} and "
            f"pp_size {base.parallelism.pipeline}; ReDrafter wants the same tp_size, and pp_size 1"
        )
    if min(chosen.redrafter_num_beams, chosen.redrafter_draft_len_per_beam) < 1:
        raise CheckpointError("--redrafter_num_beams and --redrafter_draft_len_per_beam must be at least 1")
    write_checkpoint(chosen.output_dir, _with_drafter(chosen, base))
    say(f"ReDrafter drafter of {chosen.drafter_model_dir} added; written to {chosen.output_dir}")


def _with_drafter(chosen: argparse.Namespace, base: Checkpoint) -> Checkpoint:
    try:
        config = RedrafterConfig.read(chosen.drafter_model_dir)
        tensors = read_directory(chosen.drafter_model_dir)
        RedrafterModel(config, tensors, LlamaModel(base.config, base.tensors))
    except InferenceError as problem:
        raise CheckpointError(f"{chosen.drafter_model_dir}: {problem}") from problem
    speculation = RedrafterSpeculation(
        drafter=config,
        num_beams=chosen.redrafter_num_beams,
        draft_len_per_beam=chosen.redrafter_draft_len_per_beam,
        greedy_search=chosen.redrafter_greedy_search,
    )
    return replace(base, tensors={**base.tensors, **with_prefix(tensors)}, speculation=speculation)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="convert_checkpoint.py", allow_abbrev=False)
    parser.add_argument("--base_model_checkpoint_dir", type=Path, required=True)
    parser.add_argument("--drafter_model_dir", type=Path, required=True)
    parser.add_argument("--output_dir", type=Path, default=Path("tllm_checkpoint"))
    parser.add_argument("--dtype", default="float16", choices=["float32", "bfloat16", "float16"])
    parser.add_argument("--tp_size", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--dense_context_fmha", action="store_true")
    parser.add_argument("--redrafter_num_beams", type=int, default=5)
    parser.add_argument("--redrafter_draft_len_per_beam", type=int, default=5)
    parser.add_argument(
        "--redrafter_no_greedy_search", action="store_false", default=True, dest="redrafter_greedy_search"
    )
    return parser

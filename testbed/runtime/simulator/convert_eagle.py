"""The stand-in of examples/eagle/convert_checkpoint.py: a base model and its EAGLE-1 head in one checkpoint."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.runtime.inference.eagle1 import check_pair, read_config
from testbed.runtime.inference.errors import InferenceError
from testbed.runtime.inference.safetensors import read_directory
from testbed.runtime.simulator.checkpoint import Checkpoint, write_checkpoint
from testbed.runtime.simulator.convert_arguments import add_common, add_smooth_quant, quantization, read_base
from testbed.runtime.simulator.engine_speculation import EagleSpeculation, with_prefix
from testbed.runtime.simulator.errors import CheckpointError
from testbed.runtime.simulator.gpus import require_gpus
from testbed.runtime.simulator.tool_log import say

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def convert_eagle(arguments: Sequence[str], environment: Mapping[str, str]) -> None:
    """Convert a base model and a head.

    Raises:
        NoGPUError: no GPU is visible.
        CheckpointError: a directory can't be read, they don't fit each other, or the split is not tensor-parallel.
    """
    chosen = _parser().parse_args(arguments)
    require_gpus(environment, program="convert_checkpoint.py")
    if chosen.pp_size != 1:
        raise CheckpointError(f"--pp_size {chosen.pp_size}: EAGLE does not support pipeline parallelism")
    if chosen.eagle_model_dir is None:
        raise CheckpointError(
            f"--eagle_model_dir is not given, and {chosen.model_dir} is no ModelOpt checkpoint with an EAGLE head"
        )
    checkpoint = replace(_with_head(chosen, read_base(chosen)), quantization=quantization(chosen))
    write_checkpoint(chosen.output_dir, checkpoint)
    say(f"EAGLE head of {chosen.eagle_model_dir} added; {chosen.tp_size} rank(s) written to {chosen.output_dir}")


def _with_head(chosen: argparse.Namespace, base: Checkpoint) -> Checkpoint:
    try:
        config = read_config(chosen.eagle_model_dir)
        check_pair(config, base.config)
        tensors = read_directory(chosen.eagle_model_dir)
    except InferenceError as problem:
        raise CheckpointError(str(problem)) from problem
    speculation = EagleSpeculation(
        head=config,
        num_eagle_layers=chosen.num_eagle_layers,
        max_non_leaves_per_layer=chosen.max_non_leaves_per_layer,
        max_draft_len=chosen.max_draft_len,
    )
    return replace(base, tensors={**base.tensors, **with_prefix(tensors)}, speculation=speculation)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="convert_checkpoint.py", allow_abbrev=False)
    add_common(parser, default_type="float16")
    add_smooth_quant(parser)
    parser.add_argument("--eagle_model_dir", type=Path)
    parser.add_argument("--max_draft_len", type=int, default=63)
    parser.add_argument("--num_eagle_layers", type=int, default=4)
    parser.add_argument("--max_non_leaves_per_layer", type=int, default=10)
    return parser

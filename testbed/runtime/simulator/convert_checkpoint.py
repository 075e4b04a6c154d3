"""The stand-in of examples/models/core/llama/convert_checkpoint.py."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING

from testbed.runtime.simulator.checkpoint import write_checkpoint
from testbed.runtime.simulator.convert_arguments import add_common, add_smooth_quant, quantization, read_base
from testbed.runtime.simulator.gpus import require_gpus
from testbed.runtime.simulator.tool_log import say

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def convert_checkpoint(arguments: Sequence[str], environment: Mapping[str, str]) -> None:
    """Convert a Hugging Face style Llama directory into a checkpoint.

    Raises:
        NoGPUError: no GPU is visible; the original imports tensorrt_llm, which needs libcuda.
        CheckpointError: the model can't be read, or split as asked.
    """
    chosen = _parser().parse_args(arguments)
    require_gpus(environment, program="convert_checkpoint.py")
    checkpoint = replace(read_base(chosen), quantization=quantization(chosen))
    write_checkpoint(chosen.output_dir, checkpoint)
    ranks = checkpoint.parallelism.ranks
    say(f"Total time of converting checkpoints: {ranks} rank(s) written to {chosen.output_dir}")


def _parser() -> argparse.ArgumentParser:
    # No abbreviations: a flag that the original doesn't know must not pass here.
    parser = argparse.ArgumentParser(prog="convert_checkpoint.py", allow_abbrev=False)
    add_common(parser)
    add_smooth_quant(parser)
    parser.add_argument("--cp_size", type=int, default=1, choices=[1])
    parser.add_argument("--load_by_shard", action="store_true")
    return parser

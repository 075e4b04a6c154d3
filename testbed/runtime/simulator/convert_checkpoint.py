"""The stand-in of examples/models/core/llama/convert_checkpoint.py."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.runtime.simulator.checkpoint import Parallelism, read_model, write_checkpoint
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
    parallelism = Parallelism(chosen.tp_size, chosen.pp_size)
    checkpoint = read_model(chosen.model_dir, data_type=chosen.dtype, parallelism=parallelism)
    write_checkpoint(chosen.output_dir, checkpoint)
    say(f"Total time of converting checkpoints: {parallelism.ranks} rank(s) written to {chosen.output_dir}")


def _parser() -> argparse.ArgumentParser:
    # No abbreviations: a flag that the original doesn't know must not pass here.
    parser = argparse.ArgumentParser(prog="convert_checkpoint.py", allow_abbrev=False)
    parser.add_argument("--model_dir", type=Path, required=True)
    parser.add_argument("--output_dir", type=Path, default=Path("tllm_checkpoint"))
    parser.add_argument("--dtype", default="auto", choices=["auto", "float16", "bfloat16", "float32"])
    parser.add_argument("--tp_size", type=int, default=1)
    parser.add_argument("--pp_size", type=int, default=1)
    parser.add_argument("--cp_size", type=int, default=1, choices=[1])
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--use_weight_only", action="store_true")
    parser.add_argument("--weight_only_precision", default="int8", choices=["int8", "int4", "int4_gptq"])
    parser.add_argument("--load_by_shard", action="store_true")
    parser.add_argument("--load_model_on_cpu", action="store_true")
    parser.add_argument("--use_parallel_embedding", action="store_true")
    parser.add_argument("--embedding_sharding_dim", type=int, default=0, choices=[0, 1])
    return parser

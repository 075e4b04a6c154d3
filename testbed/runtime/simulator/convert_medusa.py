"""The stand-in of examples/medusa/convert_checkpoint.py: a base model and its MEDUSA heads in one checkpoint."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.runtime.inference.errors import InferenceError
from testbed.runtime.inference.llama import LlamaModel
from testbed.runtime.inference.medusa import MedusaHeads, read_heads
from testbed.runtime.simulator.checkpoint import Checkpoint, write_checkpoint
from testbed.runtime.simulator.convert_arguments import add_common, add_smooth_quant, quantization, read_base
from testbed.runtime.simulator.engine_speculation import MedusaSpeculation, with_prefix
from testbed.runtime.simulator.errors import CheckpointError
from testbed.runtime.simulator.gpus import require_gpus
from testbed.runtime.simulator.tool_log import say

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True)
class MedusaFlags:
    """Where the heads lie, how many of them are taken, their residual layers, and the largest tree."""

    directory: Path
    heads: int
    layers: int
    max_draft_len: int


def convert_medusa(arguments: Sequence[str], environment: Mapping[str, str]) -> None:
    """Convert a base model and heads.

    Raises:
        NoGPUError: no GPU is visible.
        CheckpointError: a directory can't be read, or the weights hold fewer heads than asked for.
    """
    chosen = _parser().parse_args(arguments)
    require_gpus(environment, program="convert_checkpoint.py")
    if chosen.model_type != "llama":
        raise CheckpointError(f"--model_type {chosen.model_type}: the simulator has Llama models only")
    flags = MedusaFlags(
        chosen.medusa_model_dir, chosen.num_medusa_heads, chosen.num_medusa_layers, chosen.max_medusa_token_len
    )
    checkpoint = replace(with_medusa(read_base(chosen), flags), quantization=quantization(chosen))
    write_checkpoint(chosen.output_dir, checkpoint)
    say(f"{flags.heads} MEDUSA heads of {flags.directory} added; written to {chosen.output_dir}")


def with_medusa(base: Checkpoint, flags: MedusaFlags) -> Checkpoint:
    """Return a checkpoint with heads beside the model.

    Raises:
        CheckpointError: the heads can't be read, are too few, or are of another target.
    """
    try:
        tensors = read_heads(flags.directory)
        # Loaded once to be checked: a wrong shape must end the conversion, not the server.
        MedusaHeads(tensors, LlamaModel(base.config, base.tensors), heads=flags.heads, layers=flags.layers)
    except InferenceError as problem:
        raise CheckpointError(f"{flags.directory}: {problem}") from problem
    speculation = MedusaSpeculation(
        num_medusa_heads=flags.heads, num_medusa_layers=flags.layers, max_draft_len=flags.max_draft_len
    )
    return replace(base, tensors={**base.tensors, **with_prefix(tensors)}, speculation=speculation)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="convert_checkpoint.py", allow_abbrev=False)
    add_common(parser, default_type="float16")
    add_smooth_quant(parser)
    parser.add_argument("--medusa_model_dir", type=Path, required=True)
    parser.add_argument("--num_medusa_heads", type=int, default=4)
    parser.add_argument("--num_medusa_layers", type=int, default=1)
    parser.add_argument("--max_medusa_token_len", type=int, default=63)
    parser.add_argument("--medusa_hidden_act", default="silu", choices=["silu"])
    parser.add_argument("--model_type", default="llama", choices=["llama", "mixtral", "qwen2"])
    return parser

"""The stand-in of examples/redrafter/convert_checkpoint.py: a drafter is added to a base model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from testbed.runtime.inference.errors import InferenceError
from testbed.runtime.inference.llama import LlamaModel
from testbed.runtime.inference.redrafter import RedrafterConfig, RedrafterModel
from testbed.runtime.inference.safetensors import read_directory
from testbed.runtime.simulator.checkpoint import Checkpoint, Parallelism, read_checkpoint, read_model, write_checkpoint
from testbed.runtime.simulator.contracts import declared, option_parser
from testbed.runtime.simulator.engine_speculation import RedrafterSpeculation, with_prefix
from testbed.runtime.simulator.errors import CheckpointError
from testbed.runtime.simulator.gpus import require_gpus
from testbed.runtime.simulator.tool_log import say

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence


_DEFAULTS: Final[Mapping[str, object]] = {
    "output_dir": "tllm_checkpoint",
    "dtype": "float16",
    "tp_size": 1,
    "redrafter_num_beams": 5,
    "redrafter_draft_len_per_beam": 5,
}


def convert_redrafter(arguments: Sequence[str], environment: Mapping[str, str]) -> None:
    """Add a drafter to a base model: to its checkpoint, or to the model itself where the release takes that.

    Raises:
        NoGPUError: no GPU is visible.
        CheckpointError: a directory can't be read, they don't fit each other, or the base is split otherwise.
    """
    known = declared("engine/convert_redrafter.yaml", environment)
    chosen = option_parser("convert_checkpoint.py", known, _DEFAULTS).parse_args(arguments)
    require_gpus(environment, program="convert_checkpoint.py")
    base = _base(chosen)
    if (base.parallelism.tensor, base.parallelism.pipeline) != (chosen.tp_size, 1):
        raise CheckpointError(
            f"--tp_size {chosen.tp_size}: the base model's checkpoint has tp_size {base.parallelism.tensor} and "
            f"pp_size {base.parallelism.pipeline}; ReDrafter wants the same tp_size, and pp_size 1"
        )
    if min(chosen.redrafter_num_beams, chosen.redrafter_draft_len_per_beam) < 1:
        raise CheckpointError("--redrafter_num_beams and --redrafter_draft_len_per_beam must be at least 1")
    write_checkpoint(Path(chosen.output_dir), _with_drafter(chosen, base))
    say(f"ReDrafter drafter of {chosen.drafter_model_dir} added; written to {chosen.output_dir}")


def _base(chosen: argparse.Namespace) -> Checkpoint:
    if "model_dir" in chosen:
        return read_model(Path(chosen.model_dir), data_type=chosen.dtype, parallelism=Parallelism(chosen.tp_size, 1))
    return read_checkpoint(Path(chosen.base_model_checkpoint_dir))


def _with_drafter(chosen: argparse.Namespace, base: Checkpoint) -> Checkpoint:
    try:
        config = RedrafterConfig.read(Path(chosen.drafter_model_dir))
        tensors = read_directory(Path(chosen.drafter_model_dir))
        RedrafterModel(config, tensors, LlamaModel(base.config, base.tensors))
    except InferenceError as problem:
        raise CheckpointError(f"{chosen.drafter_model_dir}: {problem}") from problem
    speculation = RedrafterSpeculation(
        drafter=config,
        num_beams=chosen.redrafter_num_beams,
        draft_len_per_beam=chosen.redrafter_draft_len_per_beam,
        greedy_search=not chosen.redrafter_no_greedy_search,
    )
    return replace(base, tensors={**base.tensors, **with_prefix(tensors)}, speculation=speculation)

"""What the convert_checkpoint.py programs have in common: their flags, and the mark of weight-only quantization."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from testbed.runtime.simulator.checkpoint import Checkpoint, Parallelism, Quantization, read_model
from testbed.runtime.simulator.tool_log import say

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

_WEIGHT_ONLY: Final[Mapping[str, str]] = {"int8": "W8A16", "int4": "W4A16", "int4_gptq": "W4A16_GPTQ"}


def add_common(parser: argparse.ArgumentParser, *, default_type: str = "auto") -> None:
    """Add the flags of model, output, data type, split and weight-only quantization."""
    parser.add_argument("--model_dir", type=Path, required=True)
    parser.add_argument("--output_dir", type=Path, default=Path("tllm_checkpoint"))
    parser.add_argument("--dtype", default=default_type, choices=["auto", "float16", "bfloat16", "float32"])
    parser.add_argument("--tp_size", type=int, default=1)
    parser.add_argument("--pp_size", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--use_weight_only", action="store_true")
    parser.add_argument("--weight_only_precision", default="int8", choices=list(_WEIGHT_ONLY))
    parser.add_argument("--load_model_on_cpu", action="store_true")
    parser.add_argument("--use_parallel_embedding", action="store_true")
    parser.add_argument("--embedding_sharding_dim", type=int, default=0, choices=[0, 1])


def add_smooth_quant(parser: argparse.ArgumentParser) -> None:
    """Add the flags of SmoothQuant and of an INT8 cache."""
    parser.add_argument("--smoothquant", "-sq", type=float)
    parser.add_argument("--calib_dataset", default="ccdv/cnn_dailymail")
    for name in ("per_channel", "per_token", "int8_kv_cache"):
        parser.add_argument(f"--{name}", action="store_true")


def read_base(chosen: argparse.Namespace) -> Checkpoint:
    """Read the model that the common flags name.

    Raises:
        CheckpointError: it can't be read, or split as asked.
    """
    parallelism = Parallelism(chosen.tp_size, chosen.pp_size)
    return read_model(chosen.model_dir, data_type=chosen.dtype, parallelism=parallelism)


def quantization(chosen: argparse.Namespace) -> Quantization:
    """Return what the flags ask for, and say that nothing of it happens here."""
    cache = "INT8" if getattr(chosen, "int8_kv_cache", False) else None
    smooth = getattr(chosen, "smoothquant", None) is not None
    if not (chosen.use_weight_only or smooth or cache):
        return Quantization()
    algorithm = _WEIGHT_ONLY[chosen.weight_only_precision] if chosen.use_weight_only else None
    marked = Quantization("W8A8_SQ_PER_CHANNEL" if smooth else algorithm, cache)
    say(f"{marked.algorithm or cache} is a mark in config.json only: nothing is quantized, weights are unchanged")
    return marked

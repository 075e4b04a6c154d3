"""The stand-in of examples/quantization/quantize.py: it marks the checkpoint as quantized and keeps the weights."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from testbed.runtime.simulator.checkpoint import Parallelism, Quantization, read_model, write_checkpoint
from testbed.runtime.simulator.errors import CheckpointError
from testbed.runtime.simulator.gpus import require_gpus
from testbed.runtime.simulator.tool_log import say

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_ALGORITHMS: Final[Mapping[str, str | None]] = {
    "nvfp4": "NVFP4",
    "fp8": "FP8",
    "int8_sq": "W8A8_SQ_PER_CHANNEL",
    "int4_awq": "W4A16_AWQ",
    "w4a8_awq": "W4A8_AWQ",
    "int8_wo": "W8A16",
    "int4_wo": "W4A16",
    "full_prec": None,
}
_FP8_CAPABILITY: Final = (8, 9)


def quantize(arguments: Sequence[str], environment: Mapping[str, str]) -> None:
    """Convert a Hugging Face style Llama directory into a checkpoint that says it is quantized.

    Raises:
        NoGPUError: no GPU is visible.
        CheckpointError: the model can't be read, or the GPU can't do the format.
    """
    chosen = _parser().parse_args(arguments)
    gpu = require_gpus(environment, program="quantize.py")[0]
    capability = tuple(int(part) for part in gpu.compute_capability.split("."))
    if "fp8" in (chosen.qformat, chosen.kv_cache_dtype) and capability < _FP8_CAPABILITY:
        raise CheckpointError(f"fp8 needs compute capability 8.9 or newer; {gpu.product} has {gpu.compute_capability}")
    parallelism = Parallelism(chosen.tp_size, chosen.pp_size)
    checkpoint = read_model(chosen.model_dir, data_type=chosen.dtype, parallelism=parallelism)
    kv_cache = chosen.kv_cache_dtype.upper() if chosen.kv_cache_dtype else None
    marked = replace(checkpoint, quantization=Quantization(_ALGORITHMS[chosen.qformat], kv_cache))
    write_checkpoint(chosen.output_dir, marked)
    say(f"{chosen.qformat} is a mark in config.json only, weights are unchanged; written to {chosen.output_dir}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="quantize.py", allow_abbrev=False)
    parser.add_argument("--model_dir", type=Path, required=True)
    parser.add_argument("--output_dir", type=Path, default=Path("exported_model"))
    parser.add_argument("--dtype", default="auto", choices=["auto", "float16", "bfloat16", "float32"])
    parser.add_argument("--qformat", default="full_prec", choices=list(_ALGORITHMS))
    parser.add_argument("--kv_cache_dtype", choices=["int8", "fp8"])
    parser.add_argument("--tp_size", type=int, default=1)
    parser.add_argument("--pp_size", type=int, default=1)
    parser.add_argument("--cp_size", type=int, default=1, choices=[1])
    parser.add_argument("--calib_size", type=int, default=512)
    parser.add_argument("--calib_dataset", default="cnn_dailymail")
    parser.add_argument("--batch_size", type=int, default=1)
    parser.add_argument("--export_format", default="tensorrt_llm", choices=["tensorrt_llm"])
    parser.add_argument("--quantize_lm_head", action="store_true")
    return parser

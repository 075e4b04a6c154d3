"""The stand-in of examples/quantization/quantize.py: it marks the checkpoint as quantized and keeps the weights."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from testbed.runtime.simulator.checkpoint import Parallelism, Quantization, read_model, write_checkpoint
from testbed.runtime.simulator.convert_medusa import MedusaFlags, with_medusa
from testbed.runtime.simulator.errors import CheckpointError
from testbed.runtime.simulator.gpus import SimulatedGPU, require_gpus
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
# Formats of tensor cores, and the first compute capability that has them.
_CAPABILITIES: Final[Mapping[str, tuple[int, int]]] = {"fp8": (8, 9), "w4a8_awq": (8, 9), "nvfp4": (10, 0)}
_UNCALIBRATED: Final = ("int8_wo", "int4_wo", "full_prec")


def quantize(arguments: Sequence[str], environment: Mapping[str, str]) -> None:
    """Convert a Hugging Face style Llama directory into a checkpoint that says it is quantized.

    Raises:
        NoGPUError: no GPU is visible.
        CheckpointError: the model or the calibration data can't be read, or the GPU can't do the format.
    """
    chosen = _parser().parse_args(arguments)
    gpu = require_gpus(environment, program="quantize.py")[0]
    formats = _formats(chosen)
    for name in (*formats, chosen.kv_cache_dtype):
        _check_capability(name, gpu)
    if not set(formats) <= set(_UNCALIBRATED):
        _check_calibration(chosen, environment)
    parallelism = Parallelism(chosen.tp_size, chosen.pp_size)
    checkpoint = read_model(chosen.model_dir, data_type=chosen.dtype, parallelism=parallelism)
    if chosen.medusa_model_dir is not None:
        flags = MedusaFlags(
            chosen.medusa_model_dir, chosen.num_medusa_heads, chosen.num_medusa_layers, chosen.max_draft_len
        )
        checkpoint = with_medusa(checkpoint, flags)
    kv_cache = chosen.kv_cache_dtype.upper() if chosen.kv_cache_dtype else None
    algorithm = _ALGORITHMS[formats[0]] if len(formats) == 1 else "MIXED_PRECISION"
    write_checkpoint(chosen.output_dir, replace(checkpoint, quantization=Quantization(algorithm, kv_cache)))
    say(
        f"{chosen.qformat} is a mark in config.json only: nothing is quantized, weights are unchanged; "
        f"written to {chosen.output_dir}"
    )


def _formats(chosen: argparse.Namespace) -> list[str]:
    formats = str(chosen.qformat).split(",")
    unknown = [name for name in formats if name not in _ALGORITHMS]
    if unknown:
        raise CheckpointError(f"--qformat {unknown[0]}: is not one of {', '.join(_ALGORITHMS)}")
    if len(formats) > 1 and chosen.auto_quantize_bits is None:
        raise CheckpointError(f"--qformat {chosen.qformat}: several formats need --auto_quantize_bits")
    return formats


def _check_capability(name: str | None, gpu: SimulatedGPU) -> None:
    needed = _CAPABILITIES.get(name or "")
    if needed is not None and tuple(int(part) for part in gpu.compute_capability.split(".")) < needed:
        newest = " (Blackwell)" if needed >= (10, 0) else ""
        raise CheckpointError(
            f"{name} needs compute capability {needed[0]}.{needed[1]}{newest} or newer; "
            f"{gpu.product} has {gpu.compute_capability}"
        )


def _check_calibration(chosen: argparse.Namespace, environment: Mapping[str, str]) -> None:
    """Check that the data could be had; they are not read, for nothing is calibrated."""
    data = Path(chosen.calib_dataset)
    if data.is_absolute() and not data.exists():
        raise CheckpointError(f"--calib_dataset {data}: is not there")
    if not data.exists() and environment.get("HF_HUB_OFFLINE", "0") not in ("0", ""):
        raise CheckpointError(f"--calib_dataset {data}: HF_HUB_OFFLINE is set, and there is no such directory")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="quantize.py", allow_abbrev=False)
    parser.add_argument("--model_dir", type=Path, required=True)
    parser.add_argument("--output_dir", type=Path, default=Path("exported_model"))
    parser.add_argument("--dtype", default="auto", choices=["auto", "float16", "bfloat16", "float32"])
    parser.add_argument("--qformat", default="full_prec")
    parser.add_argument("--kv_cache_dtype", choices=["int8", "fp8"])
    parser.add_argument("--tp_size", type=int, default=1)
    parser.add_argument("--pp_size", type=int, default=1)
    parser.add_argument("--cp_size", type=int, default=1, choices=[1])
    parser.add_argument("--calib_size", type=int, default=512)
    parser.add_argument("--calib_dataset", default="cnn_dailymail")
    parser.add_argument("--batch_size", type=int, default=1)
    parser.add_argument("--export_format", default="tensorrt_llm", choices=["tensorrt_llm"])
    parser.add_argument("--quantize_lm_head", action="store_true")
    parser.add_argument("--autoq_format")
    parser.add_argument("--auto_quantize_bits", type=float)
    _add_medusa(parser)
    return parser


def _add_medusa(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--medusa_model_dir", type=Path)
    parser.add_argument("--num_medusa_heads", type=int, default=4)
    parser.add_argument("--num_medusa_layers", type=int, default=1)
    parser.add_argument("--max_draft_len", type=int, default=63)
    parser.add_argument("--medusa_hidden_act", default="silu", choices=["silu"])
    parser.add_argument("--quant_medusa_head", action="store_true")

"""Engine directories: config.json as TensorRT-LLM writes it, and one marked file per rank."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from testbed.runtime.inference.errors import ModelFilesError
from testbed.runtime.inference.llama import LlamaConfig, LlamaModel, read_json
from testbed.runtime.simulator.checkpoint import Checkpoint, Parallelism, parse_pretrained
from testbed.runtime.simulator.engine_speculation import HeadSpeculation, parse_speculation
from testbed.runtime.simulator.errors import EngineError
from testbed.runtime.simulator.release import ENGINE_MAGIC, TENSORRT_LLM_VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from testbed.runtime.inference.safetensors import Tensor

# TensorRT-LLM writes the mode as the number of its flag.
SPECULATIVE_MODES: Final[Mapping[str, int]] = {
    "none": 1,
    "draft_tokens_external": 2,
    "medusa": 4,
    "lookahead_decoding": 8,
    "explicit_draft_tokens": 16,
    "eagle": 32,
}


@dataclass(frozen=True)
class BuildLimits:
    """What an engine is built for; lengths in tokens."""

    max_batch_size: int
    max_input_len: int
    max_seq_len: int
    max_num_tokens: int
    max_beam_width: int = 1
    max_draft_len: int = 0
    speculative_decoding_mode: str = "none"


@dataclass(frozen=True)
class EngineDescription:
    """What config.json of an engine directory says."""

    directory: Path
    version: str
    model: LlamaConfig
    parallelism: Parallelism
    limits: BuildLimits
    speculation: HeadSpeculation | None = None
    logits_type: str = "float32"


def write_engine(
    directory: Path, checkpoint: Checkpoint, limits: BuildLimits, *, gpu: str, overrides: Mapping[str, Any]
) -> None:
    """Write an engine directory.

    Args:
        directory: made when missing.
        checkpoint: the model and its split.
        limits: what it is built for.
        gpu: product name that the engine is bound to.
        overrides: `logits_dtype` and `plugin_config` as the command line gave them.
    """
    directory.mkdir(parents=True, exist_ok=True)
    for rank in range(checkpoint.parallelism.ranks):
        header = {"tensorrt_llm": TENSORRT_LLM_VERSION, "gpu": gpu, "rank": rank, "note": "simulated, no CUDA code"}
        content = io.BytesIO()
        half = checkpoint.data_type != "float32"
        stored = {name: _stored(tensor, half=half) for name, tensor in checkpoint.rank_tensors(rank).items()}
        np.savez(content, **stored)  # type: ignore[arg-type]  # names are strings; the stub takes them for options
        head = f"{ENGINE_MAGIC}\n{json.dumps(header)}\n".encode()
        (directory / f"rank{rank}.engine").write_bytes(head + content.getvalue())
    pretrained = checkpoint.document() | {"logits_dtype": overrides["logits_dtype"]}
    document = {
        "version": TENSORRT_LLM_VERSION,
        "pretrained_config": pretrained,
        "build_config": _build_config(limits, overrides["plugin_config"]),
    }
    (directory / "config.json").write_text(json.dumps(document, indent=4) + "\n")


def _stored(tensor: Tensor, *, half: bool) -> Tensor:
    # bfloat16 has no numpy type; its values are kept in float32.
    lossless = half and bool(np.array_equal(tensor.astype(np.float16).astype(tensor.dtype), tensor))
    return tensor.astype(np.float16) if lossless else tensor


def _build_config(limits: BuildLimits, plugins: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "max_input_len": limits.max_input_len,
        "max_seq_len": limits.max_seq_len,
        "max_batch_size": limits.max_batch_size,
        "max_beam_width": limits.max_beam_width,
        "max_num_tokens": limits.max_num_tokens,
        "kv_cache_type": "PAGED",
        "gather_context_logits": False,
        "gather_generation_logits": False,
        "strongly_typed": True,
        "max_draft_len": limits.max_draft_len,
        "speculative_decoding_mode": SPECULATIVE_MODES[limits.speculative_decoding_mode],
        "plugin_config": dict(plugins),
    }


def describe_engine(directory: Path) -> EngineDescription:
    """Read config.json of an engine directory.

    Raises:
        EngineError: it is missing or no engine's.
    """
    try:
        document = read_json(directory / "config.json")
        parallelism, model = parse_pretrained(document["pretrained_config"])
        build = document["build_config"]
        modes = {number: name for name, number in SPECULATIVE_MODES.items()}
        limits = BuildLimits(
            max_batch_size=build["max_batch_size"],
            max_input_len=build["max_input_len"],
            max_seq_len=build["max_seq_len"],
            max_num_tokens=build["max_num_tokens"],
            max_beam_width=build["max_beam_width"],
            max_draft_len=build["max_draft_len"],
            speculative_decoding_mode=modes[build["speculative_decoding_mode"]],
        )
        pretrained = document["pretrained_config"]
        speculation, logits = parse_speculation(pretrained), pretrained["logits_dtype"]
        return EngineDescription(directory, document["version"], model, parallelism, limits, speculation, logits)
    except (ModelFilesError, KeyError, TypeError) as problem:
        raise EngineError(f"{directory}: is not an engine directory of this simulator: {problem}") from problem


def check_rank(description: EngineDescription, rank: int, *, gpu: str) -> dict[str, Tensor]:
    """Read the file of one rank and return its tensors.

    Args:
        description: of the engine directory.
        rank: 0 … ranks-1.
        gpu: product name of the GPU that it shall run on.

    Raises:
        EngineError: the file is missing, or was built by another TensorRT-LLM or for another GPU.
    """
    file = description.directory / f"rank{rank}.engine"
    try:
        magic, header_text, content = file.read_bytes().split(b"\n", 2)
        header = json.loads(header_text) if magic.decode() == ENGINE_MAGIC else None
    except OSError as problem:
        raise EngineError(f"Error opening engine file: {file}") from problem
    except ValueError as problem:
        raise EngineError(f"{file}: is not a simulated engine") from problem
    if header is None:
        raise EngineError(f"{file}: is not a simulated engine; only engines built in this image can be loaded")
    if header["tensorrt_llm"] != TENSORRT_LLM_VERSION:
        raise EngineError(
            f"{file}: The engine plan file is not compatible with this version of TensorRT-LLM, expecting "
            f"{TENSORRT_LLM_VERSION} got {header['tensorrt_llm']}, please rebuild."
        )
    if header["gpu"] != gpu:
        raise EngineError(f"{file}: The engine was built for {header['gpu']} and can't run on {gpu}, please rebuild.")
    with np.load(io.BytesIO(content)) as tensors:
        return {name: tensors[name].astype(np.float32) for name in tensors.files}


def load_engine(description: EngineDescription, *, gpu: str) -> LlamaModel:
    """Load the model of all ranks' files; raises what `load_parts` raises."""
    return load_parts(description, gpu=gpu)[0]


def load_parts(description: EngineDescription, *, gpu: str) -> tuple[LlamaModel, Mapping[str, Tensor]]:
    """Load the model of all ranks' files, and all their tensors, a drafter's too.

    Raises:
        EngineError: as `check_rank`, or the files don't make a whole model.
    """
    tensors: dict[str, Tensor] = {}
    for rank in range(description.parallelism.ranks):
        tensors |= check_rank(description, rank, gpu=gpu)
    try:
        return LlamaModel(description.model, tensors), tensors
    except ModelFilesError as problem:
        raise EngineError(f"{description.directory}: the ranks' files don't make a whole model: {problem}") from problem

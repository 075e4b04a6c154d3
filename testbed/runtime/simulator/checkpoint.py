"""Checkpoints as convert_checkpoint.py and quantize.py leave them: config.json and one file of weights per rank.

The weights keep their Hugging Face names, and a rank holds every n-th tensor rather than a slice of each: the files
have the right number and the right total, but they are no tensor-parallel shards.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from testbed.runtime.inference.errors import ModelFilesError
from testbed.runtime.inference.llama import LlamaConfig, read_json
from testbed.runtime.inference.safetensors import FloatType, Tensor, read_directory, read_tensors, write_tensors
from testbed.runtime.simulator.engine_speculation import HeadSpeculation, parse_speculation
from testbed.runtime.simulator.errors import CheckpointError
from testbed.runtime.simulator.release import TENSORRT_LLM_VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

DataType = Literal["float16", "bfloat16", "float32"]
DATA_TYPES: Final[Mapping[DataType, FloatType]] = {"float16": "F16", "bfloat16": "BF16", "float32": "F32"}


@dataclass(frozen=True)
class Parallelism:
    """How many ranks share a model."""

    tensor: int = 1
    pipeline: int = 1

    @property
    def ranks(self) -> int:
        """The number of MPI ranks that the engine needs."""
        return self.tensor * self.pipeline


@dataclass(frozen=True)
class Quantization:
    """TensorRT-LLM's names of the algorithms, such as `FP8`; none for full precision."""

    algorithm: str | None = None
    kv_cache: str | None = None


@dataclass(frozen=True)
class Checkpoint:
    """A model on its way to an engine; `tensors` are keyed by Hugging Face names, a drafter's with a prefix."""

    config: LlamaConfig
    tensors: Mapping[str, Tensor]
    data_type: DataType
    parallelism: Parallelism
    quantization: Quantization = Quantization()
    speculation: HeadSpeculation | None = None

    def document(self) -> dict[str, Any]:
        """Return the `pretrained_config` that stands in a checkpoint's and an engine's config.json."""
        config = self.config
        return {
            "architecture": "LlamaForCausalLM",
            "dtype": self.data_type,
            "logits_dtype": "float32",
            "vocab_size": config.vocab_size,
            "max_position_embeddings": config.max_position_embeddings,
            "hidden_size": config.hidden_size,
            "num_hidden_layers": config.num_hidden_layers,
            "num_attention_heads": config.num_attention_heads,
            "num_key_value_heads": config.num_key_value_heads,
            "head_size": config.head_dim,
            "intermediate_size": config.intermediate_size,
            "norm_epsilon": config.rms_norm_eps,
            "rotary_base": config.rope_theta,
            "hidden_act": "silu",
            "position_embedding_type": "rope_gpt_neox",
            "mapping": self._mapping(),
            "quantization": self._quantization(),
            "simulator": asdict(config),
            **(self.speculation.document() if self.speculation else {}),
        }

    def _mapping(self) -> dict[str, int]:
        shared = self.parallelism
        return {"world_size": shared.ranks, "tp_size": shared.tensor, "pp_size": shared.pipeline, "cp_size": 1}

    def _quantization(self) -> dict[str, str | None]:
        return {"quant_algo": self.quantization.algorithm, "kv_cache_quant_algo": self.quantization.kv_cache}

    def rank_tensors(self, rank: int) -> dict[str, Tensor]:
        """Return the tensors that the file of one rank holds."""
        names = sorted(self.tensors)[rank :: self.parallelism.ranks]
        return {name: self.tensors[name] for name in names}


def read_model(directory: Path, *, data_type: str, parallelism: Parallelism) -> Checkpoint:
    """Read a Hugging Face style model directory; `data_type` `auto` takes the model's own.

    Raises:
        CheckpointError: the directory holds no Llama model, or can't be split as asked.
    """
    try:
        config = LlamaConfig.read(directory)
        tensors = read_directory(directory)
        own = read_json(directory / "config.json").get("torch_dtype", "float16")
    except ModelFilesError as problem:
        raise CheckpointError(str(problem)) from problem
    _check_split(config, parallelism)
    chosen = own if data_type == "auto" else data_type
    known = next((known for known in DATA_TYPES if known == chosen), None)
    if known is None:
        raise CheckpointError(f"{directory}: dtype {chosen} is not one of {', '.join(DATA_TYPES)}")
    return Checkpoint(config, tensors, known, parallelism)


def write_checkpoint(directory: Path, checkpoint: Checkpoint) -> None:
    """Write config.json and one weights file per rank."""
    directory.mkdir(parents=True, exist_ok=True)
    for rank in range(checkpoint.parallelism.ranks):
        file = directory / f"rank{rank}.safetensors"
        write_tensors(file, checkpoint.rank_tensors(rank), dtype=DATA_TYPES[checkpoint.data_type])
    document = {"version": TENSORRT_LLM_VERSION, **checkpoint.document()}
    (directory / "config.json").write_text(json.dumps(document, indent=4) + "\n")


def read_checkpoint(directory: Path) -> Checkpoint:
    """Read what `write_checkpoint` wrote.

    Raises:
        CheckpointError: a file is missing or was written by another program.
    """
    try:
        document = read_json(directory / "config.json")
        parallelism, config = parse_pretrained(document)
        tensors: dict[str, Tensor] = {}
        for rank in range(parallelism.ranks):
            tensors |= read_tensors(directory / f"rank{rank}.safetensors")
        quantization = Quantization(*document["quantization"].values())
        speculation = parse_speculation(document)
        return Checkpoint(config, tensors, document["dtype"], parallelism, quantization, speculation)
    except (ModelFilesError, KeyError, TypeError) as problem:
        raise CheckpointError(f"{directory}: is not a checkpoint of this simulator: {problem}") from problem


def parse_pretrained(document: Mapping[str, Any]) -> tuple[Parallelism, LlamaConfig]:
    """Take the split and the model's shape from a `pretrained_config`.

    Raises:
        KeyError: a field is missing.
        TypeError: a field is of another kind.
    """
    mapping = document["mapping"]
    return Parallelism(mapping["tp_size"], mapping["pp_size"]), LlamaConfig(**document["simulator"])


def _check_split(config: LlamaConfig, parallelism: Parallelism) -> None:
    if config.num_attention_heads % parallelism.tensor:
        raise CheckpointError(
            f"num_attention_heads ({config.num_attention_heads}) is not divisible by tp_size ({parallelism.tensor})"
        )
    if config.num_hidden_layers % parallelism.pipeline:
        raise CheckpointError(
            f"num_hidden_layers ({config.num_hidden_layers}) is not divisible by pp_size ({parallelism.pipeline})"
        )

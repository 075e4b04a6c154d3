"""The LLM API's arguments of the simulated release, as strict as pydantic's `extra="forbid"` there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from testbed.runtime.simulator.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Mapping

_NOT_ON_PYTORCH: Final = ("Medusa", "Lookahead")
_SIMULATED: Final = ("Eagle", "DraftTarget")


@dataclass(frozen=True)
class KnownKeys:
    """The keys that the release knows, by the place where they stand."""

    arguments: frozenset[str]
    kv_cache_config: frozenset[str]
    triton_config: frozenset[str]
    speculative_config: frozenset[str]
    decoding_types: Mapping[str, frozenset[str]]

    @classmethod
    def read(cls) -> KnownKeys:
        """Read the list that lies beside this module."""
        lists = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text())
        types = {name: frozenset(fields) for name, fields in lists.pop("decoding_types").items()}
        return cls(**{name: frozenset(fields) for name, fields in lists.items()}, decoding_types=types)


@dataclass(frozen=True)
class SpeculationArguments:
    """A draft and its length; `method` is `Eagle` or `DraftTarget`."""

    method: str
    directory: Path
    max_draft_len: int


@dataclass(frozen=True)
class LLMArguments:
    """What of model.yaml decides what the simulator does; all other known keys are checked by name only."""

    model: Path
    tensor_parallel_size: int
    pipeline_parallel_size: int
    max_seq_len: int | None
    speculation: SpeculationArguments | None


def parse_arguments(document: Any, known: KnownKeys) -> LLMArguments:
    """Parse model.yaml.

    Raises:
        ParameterError: a key that the release doesn't know, or a value that it refuses.
    """
    if not isinstance(document, dict) or not isinstance(document.get("triton_config"), dict):
        raise ParameterError("model.yaml: must be a mapping with triton_config {max_batch_size, decoupled}")
    _forbid_extra("triton_config", document["triton_config"], known.triton_config)
    arguments = {key: value for key, value in document.items() if key != "triton_config"}
    _forbid_extra("TorchLlmArgs", arguments, known.arguments)
    _forbid_extra("KvCacheConfig", arguments.get("kv_cache_config") or {}, known.kv_cache_config)
    if arguments.get("backend", "pytorch") != "pytorch":
        raise ParameterError(f"backend: {arguments['backend']!r} is not simulated; use pytorch")
    if not isinstance(arguments.get("model"), str):
        raise ParameterError("TorchLlmArgs: model: Field required")
    parsed = LLMArguments(
        model=Path(arguments["model"]),
        tensor_parallel_size=_whole(arguments, "tensor_parallel_size", 1),
        pipeline_parallel_size=_whole(arguments, "pipeline_parallel_size", 1),
        max_seq_len=arguments.get("max_seq_len"),
        speculation=_speculation(arguments.get("speculative_config"), known),
    )
    if parsed.speculation and parsed.pipeline_parallel_size > 1:
        raise ParameterError("speculative decoding is not supported with pipeline parallelism on the PyTorch backend")
    return parsed


def _speculation(fields: Any, known: KnownKeys) -> SpeculationArguments | None:
    if fields is None:
        return None
    method = str(fields.get("decoding_type")) if isinstance(fields, dict) else ""
    if method not in known.decoding_types:
        raise ParameterError(f"Invalid decoding type: {method}; known are {', '.join(sorted(known.decoding_types))}")
    _forbid_extra(f"{method}DecodingConfig", fields, known.speculative_config | known.decoding_types[method])
    if method in _NOT_ON_PYTORCH:
        raise ParameterError(f"speculative_config: {method} is not supported on the PyTorch backend")
    if method not in _SIMULATED:
        raise ParameterError(f"speculative_config: the simulator has no stand-in for {method}")
    if not fields.get("speculative_model_dir"):
        raise ParameterError(f"{method}DecodingConfig: speculative_model_dir is required")
    length = _whole(fields, "max_draft_len", 0)
    if length < 1:
        raise ParameterError(f"{method}DecodingConfig: max_draft_len must be greater than 0")
    return SpeculationArguments(method, Path(fields["speculative_model_dir"]), length)


def _forbid_extra(where: str, fields: Mapping[str, object], known: frozenset[str]) -> None:
    extra = sorted(set(fields) - known)
    if extra:
        raise ParameterError(f"1 validation error for {where}: {extra[0]}: Extra inputs are not permitted")


def _whole(fields: Mapping[str, Any], key: str, default: int) -> int:
    value = fields.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ParameterError(f"{key}: Input should be a valid integer, not {value!r}")
    return value

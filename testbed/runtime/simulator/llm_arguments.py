"""The LLM API's arguments of the played release, as strict as pydantic's `extra="forbid"` there."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from testbed.runtime.inference.ngram import PoolRules
from testbed.runtime.simulator.errors import ParameterError
from testbed.runtime.simulator.llm_releases import KnownKeys

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["KnownKeys", "LLMArguments", "SpeculationArguments", "parse_arguments"]

_NOT_ON_PYTORCH: Final = ("Medusa", "Lookahead")
# By the spelling of any release.
_SIMULATED: Final = {
    "Eagle": "Eagle",
    "Eagle3": "Eagle",
    "DraftTarget": "DraftTarget",
    "Draft_Target": "DraftTarget",
    "NGram": "NGram",
    "MTP": "MTP",
}
_NGRAM_FIELDS: Final = ("max_matching_ngram_size", "is_keep_all", "is_use_oldest", "is_public_pool")


@dataclass(frozen=True, kw_only=True)
class SpeculationArguments:
    """How tokens are drafted.

    Attributes:
        method: `Eagle` (an EAGLE-3 head, on PyTorch), `DraftTarget`, `NGram` or `MTP`, however the release spells it.
        max_draft_len: tokens drafted at a time.
        directory: of the draft model or head; None where the method needs none.
        pool: the n-gram pool's rules; read for `NGram` alone.
    """

    method: str
    max_draft_len: int
    directory: Path | None = None
    pool: PoolRules = field(default_factory=PoolRules)


@dataclass(frozen=True)
class LLMArguments:
    """What of model.yaml decides what the simulator does; of all other known keys only name and type are checked."""

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
    _check("triton_config", document["triton_config"], known.triton_config, known)
    arguments = {key: value for key, value in document.items() if key != "triton_config"}
    _check("TorchLlmArgs", arguments, known.arguments, known)
    _check("KvCacheConfig", arguments.get("kv_cache_config") or {}, known.kv_cache_config, known)
    if arguments.get("backend", "pytorch") != "pytorch":
        raise ParameterError(f"backend: {arguments['backend']!r} is not simulated; use pytorch")
    if not isinstance(arguments.get("model"), str):
        raise ParameterError("TorchLlmArgs: model: Field required")
    parsed = LLMArguments(
        model=Path(arguments["model"]),
        tensor_parallel_size=arguments.get("tensor_parallel_size", 1),
        pipeline_parallel_size=arguments.get("pipeline_parallel_size", 1),
        max_seq_len=arguments.get("max_seq_len"),
        speculation=_speculation(arguments.get("speculative_config"), known),
    )
    if parsed.speculation and parsed.pipeline_parallel_size > 1:
        raise ParameterError("speculative decoding is not supported with pipeline parallelism on the PyTorch backend")
    return parsed


def _speculation(fields: Any, known: KnownKeys) -> SpeculationArguments | None:
    if fields is None:
        return None
    spelling = str(fields.get("decoding_type")) if isinstance(fields, dict) else ""
    if spelling not in known.decoding_types:
        raise ParameterError(f"Invalid decoding type: {spelling}; known are {', '.join(sorted(known.decoding_types))}")
    where = f"{spelling.replace('_', '')}DecodingConfig"
    _check(where, fields, known.speculative_config | known.decoding_types[spelling], known)
    if spelling in _NOT_ON_PYTORCH:
        raise ParameterError(f"speculative_config: {spelling} is not supported on the PyTorch backend")
    if spelling not in _SIMULATED:
        raise ParameterError(f"speculative_config: the simulator has no stand-in for {spelling}")
    return _method(_SIMULATED[spelling], fields, where, known)


def _method(method: str, fields: Mapping[str, Any], where: str, known: KnownKeys) -> SpeculationArguments:
    if method == "MTP":
        # Its own key decides; max_draft_len beside it changes nothing, silently, as in the original.
        length = fields.get(known.mtp_length_key, fields.get("num_nextn_predict_layers", 1))
        return SpeculationArguments(method=method, max_draft_len=_positive(length, where, known.mtp_length_key))
    length_key = known.ngram_length_key if method == "NGram" else "max_draft_len"
    length = _positive(fields.get(length_key, 0), where, length_key)
    if method == "NGram":
        pool = PoolRules(**{key: fields[key] for key in _NGRAM_FIELDS if key in fields})
        _positive(pool.max_matching_ngram_size, where, "max_matching_ngram_size")
        return SpeculationArguments(method=method, max_draft_len=length, pool=pool)
    given = [fields[key] for key in known.draft_keys if fields.get(key)]
    if not given:
        raise ParameterError(f"{where}: {known.draft_keys[0]} is required")
    return SpeculationArguments(method=method, max_draft_len=length, directory=Path(str(given[0])))


def _check(where: str, fields: Mapping[str, Any], allowed: frozenset[str], known: KnownKeys) -> None:
    extra = sorted(set(fields) - allowed)
    if extra:
        raise ParameterError(f"1 validation error for {where}: {extra[0]}: Extra inputs are not permitted")
    for key, value in fields.items():
        if value is not None:
            _check_value(f"1 validation error for {where}: {key}", key, value, known)


def _check_value(where: str, key: str, value: object, known: KnownKeys) -> None:
    if key in known.booleans and not isinstance(value, bool):
        raise ParameterError(f"{where}: Input should be a valid boolean, not {value!r}")
    if key in known.integers and (not isinstance(value, int) or isinstance(value, bool)):
        raise ParameterError(f"{where}: Input should be a valid integer, not {value!r}")
    if key in known.fractions and not (isinstance(value, int | float) and 0 <= value <= 1):
        raise ParameterError(f"{where}: Input should be a number from 0 to 1, not {value!r}")


def _positive(value: int, where: str, key: str) -> int:
    if value < 1:
        raise ParameterError(f"{where}: {key} must be greater than 0")
    return value

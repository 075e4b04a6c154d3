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

_NGRAM_FIELDS: Final = ("max_matching_ngram_size", "is_keep_all", "is_use_oldest", "is_public_pool")
_LENGTHS: Final = ("max_draft_len", "prompt_lookup_num_tokens", "num_nextn_predict_layers")
_KINDS: Final = {"bool": "boolean", "int": "integer", "float": "number from 0 to 1", "str": "string"}


@dataclass(frozen=True, kw_only=True)
class SpeculationArguments:
    """How tokens are drafted.

    Attributes:
        method: `Eagle3`, `DraftTarget`, `NGram` or `MTP`, however the release spells it.
        max_draft_len: tokens drafted at a time.
        directory: of the draft model or head; None where the method needs none.
        pool: the n-gram pool's rules; read for `NGram` alone.
        own_layers: architectures whose own layers the release drafts with; read for `MTP` alone.
    """

    method: str
    max_draft_len: int
    directory: Path | None = None
    pool: PoolRules = field(default_factory=PoolRules)
    own_layers: frozenset[str] = frozenset()


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
    arguments = {key: value for key, value in document.items() if key != "triton_config"}
    _check("TorchLlmArgs", arguments, known.arguments)
    for section, kinds in known.sections.items():
        _check(section, document.get(section) or {}, kinds, ignores=known.ignores)
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
    kind, where = known.decoding_types[spelling], f"{spelling.replace('_', '')}DecodingConfig"
    _check(where, fields, {**known.speculative_config, **kind.fields}, ignores=known.ignores)
    for keys in kind.needs:
        if all(fields.get(key) is None for key in keys):
            raise ParameterError(f"{where}: {keys[0]} is required")
    for key, default in kind.positive.items():
        if fields.get(key, default) < 1:
            raise ParameterError(f"{where}: {key} must be greater than 0")
    # MTP's own key decides; max_draft_len beside it changes nothing, silently, as in the original.
    key = next((key for key in _LENGTHS if key in kind.positive), "max_draft_len")
    paths = [fields[name] for name in next(iter(kind.needs), ()) if fields.get(name)]
    return SpeculationArguments(
        method=kind.method,
        max_draft_len=fields.get(key, kind.positive.get(key)),
        directory=Path(str(paths[0])) if paths else None,
        pool=PoolRules(**{name: fields[name] for name in _NGRAM_FIELDS if name in fields}),
        own_layers=known.own_layers,
    )


def _check(where: str, fields: Mapping[str, Any], kinds: Mapping[str, str], *, ignores: bool = False) -> None:
    extra = sorted(set(fields) - set(kinds))
    if extra and not ignores:
        raise ParameterError(f"1 validation error for {where}: {extra[0]}: Extra inputs are not permitted")
    for key, value in fields.items():
        kind = kinds.get(key, "any")
        if value is not None and not _is(value, kind):
            message = f"Input should be a valid {_KINDS[kind]}, not {value!r}"
            raise ParameterError(f"1 validation error for {where}: {key}: {message}")


def _is(value: object, kind: str) -> bool:
    if kind == "bool" or isinstance(value, bool):
        return isinstance(value, bool) and kind in ("bool", "any")
    if kind == "int":
        return isinstance(value, int)
    if kind == "float":
        return isinstance(value, int | float) and 0 <= value <= 1
    return kind != "str" or isinstance(value, str)

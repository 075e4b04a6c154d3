"""The engine backend's reading of a model's config.pbtxt parameters: lenient where the original is, strict where it is.

An unfilled `${…}` or unreadable value of a string parameter only warns and takes the default; a few keys must be there.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from testbed.runtime.simulator.errors import ParameterError
from testbed.runtime.simulator.parameters_decoding import DecodingParameters, parse_decoding

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_Value = TypeVar("_Value")

_BATCHING_STRATEGIES: Final = ("V1", "v1", "inflight_batching", "inflight_fused_batching")
_REQUIRED_KEYS: Final = ("tokenizer_dir", "guided_decoding_backend", "xgrammar_tokenizer_info_path")
_TRUE: Final = ("True", "true", "TRUE", "1")
_FALSE: Final = ("False", "false", "FALSE", "0")
_FRACTIONS: Final = ("kv_cache_free_gpu_mem_fraction", "gpu_weights_percent")
_POLICIES: Final = ("max_utilization", "guaranteed_no_evict")


@dataclass(frozen=True)
class EngineParameters:
    """What the engine backend takes from a model's configuration.

    Attributes:
        model_name: the Triton model.
        engine_directory: `gpt_model_path`.
        max_batch_size: Triton's.
        decoupled: whether a request may have several responses.
        device_ids: GPUs of the model's ranks, in rank order; none means as many visible ones as there are ranks.
        participant_ids: MPI ranks of the model; none when left out.
        fast_logits: as asked for; whether it is on depends on the MPI roles.
        exclude_input_in_output: default of requests that don't say.
        max_beam_width: widest beam search.
        decoding: mode, trees and lookahead sizes.
        warnings: one line per parameter that fell back to its default.
    """

    model_name: str
    engine_directory: Path
    max_batch_size: int
    decoupled: bool
    device_ids: tuple[int, ...] | None
    participant_ids: tuple[int, ...] | None
    fast_logits: bool
    exclude_input_in_output: bool
    max_beam_width: int
    decoding: DecodingParameters
    warnings: tuple[str, ...]


def parse_parameters(config: Mapping[str, Any]) -> EngineParameters:
    """Parse the JSON form of a model configuration, as Triton gives it to a backend.

    Raises:
        ParameterError: what the original refuses: no engine directory, an unknown batching strategy, a missing key.
    """
    values = _Values({key: str(entry["string_value"]) for key, entry in config.get("parameters", {}).items()})
    _check_keys(values)
    path = values.text("gpt_model_path")
    if path is None:
        raise ParameterError("gpt_model_path: the engine directory is not set (template variable engine_dir)")
    _check_known_values(values)
    return EngineParameters(
        model_name=config["name"],
        engine_directory=Path(path),
        max_batch_size=int(config.get("max_batch_size", 0)),
        decoupled=bool(config.get("model_transaction_policy", {}).get("decoupled", False)),
        device_ids=values.one_instance("gpu_device_ids"),
        participant_ids=values.one_instance("participant_ids"),
        fast_logits=values.parsed("speculative_decoding_fast_logits", _boolean, default=False),
        exclude_input_in_output=values.parsed("exclude_input_in_output", _boolean, default=False),
        max_beam_width=values.parsed("max_beam_width", int, default=1),
        decoding=parse_decoding(values.texts(), values.warnings),
        warnings=tuple(values.warnings),
    )


def _check_keys(values: _Values) -> None:
    missing = [key for key in _REQUIRED_KEYS if not values.has(key)]
    if missing:
        raise ParameterError(
            f"Model config doesn't contain parameter {missing[0]}; the config.pbtxt is of an old release"
        )
    if values.has("worker_path"):
        raise ParameterError("worker_path is deprecated, please use executor_worker_path instead.")


def _check_known_values(values: _Values) -> None:
    strategy = values.text("gpt_model_type")
    if strategy not in _BATCHING_STRATEGIES:
        raise ParameterError(f"Invalid gpt_model_type. Must be {', '.join(_BATCHING_STRATEGIES)}, not {strategy}")
    values.parsed("batch_scheduler_policy", _policy, default="guaranteed_no_evict")
    for key in _FRACTIONS:
        values.parsed(key, _fraction, default=0.9)
    for key in ("enable_kv_cache_reuse", "enable_chunked_context", "normalize_log_probs"):
        values.parsed(key, _boolean, default=True)
    for key in ("max_tokens_in_paged_kv_cache", "kv_cache_host_memory_bytes", "num_nodes"):
        values.parsed(key, int, default=0)


class _Values:
    """String parameters, and the warnings that reading them gave."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values
        self.warnings: list[str] = []

    def has(self, key: str) -> bool:
        return key in self._values

    def texts(self) -> dict[str, str | None]:
        return {key: self.text(key) for key in self._values}

    def text(self, key: str) -> str | None:
        value = self._values.get(key, "")
        return None if value == "" or value.startswith("${") else value

    def parsed(self, key: str, parse: Callable[[str], _Value], *, default: _Value) -> _Value:
        text = self.text(key)
        if text is not None:
            try:
                return parse(text)
            except ValueError:
                self.warnings.append(f"{key} has the value {text!r}, which is not understood, will use default value.")
                return default
        self.warnings.append(f"{key} is not specified, will use default value.")
        return default

    def one_instance(self, key: str) -> tuple[int, ...] | None:
        text = self.text(key)
        if text is None:
            self.warnings.append(f"{key} is not specified, will be automatically set")
            return None
        if ";" in text:
            raise ParameterError(f"{key}: several instances ({text}) are not simulated; give one list")
        try:
            return tuple(int(part) for part in text.split(","))
        except ValueError as problem:
            raise ParameterError(f"{key}: {text!r} is not a list of numbers") from problem


def _boolean(text: str) -> bool:
    if text not in (*_TRUE, *_FALSE):
        raise ValueError(text)
    return text in _TRUE


def _fraction(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 1:
        raise ValueError(text)
    return value


def _policy(text: str) -> str:
    if text not in _POLICIES:
        raise ValueError(text)
    return text

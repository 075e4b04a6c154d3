"""vLLM's engine arguments of the played release, as strict about keys as AsyncEngineArgs and SpeculativeConfig are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from testbed.runtime.simulator.errors import ParameterError
from testbed.runtime.simulator.release import VLLM_VERSION
from testbed.runtime.simulator.vllm_releases import VLLMRelease

if TYPE_CHECKING:
    from collections.abc import Mapping

_INTEGERS: Final = (
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "max_model_len",
    "max_num_seqs",
    "max_num_batched_tokens",
)
# The nested spelling of each flat key that decides something here.
_FLAT: Final = {
    "speculative_model": "model",
    "num_speculative_tokens": "num_speculative_tokens",
    "speculative_draft_tensor_parallel_size": "draft_tensor_parallel_size",
    "speculative_max_model_len": "max_model_len",
    "speculative_disable_by_batch_size": "disable_by_batch_size",
    "ngram_prompt_lookup_max": "prompt_lookup_max",
    "ngram_prompt_lookup_min": "prompt_lookup_min",
}
_DEFAULT_MAX_NUM_SEQS: Final = 256
_DEFAULT_LOOKUP: Final = 5


@dataclass(frozen=True, kw_only=True)
class SpeculativeFields:
    """speculative_config, or the flat keys of old releases.

    Attributes:
        method: as spelled; None is found out from the draft's path and files.
        model: the draft's directory, or `[ngram]`; None where it is not given.
        num_speculative_tokens: tokens drafted at a time.
        draft_tensor_parallel_size: GPUs of the draft; None means the target's.
        max_model_len: limit of the draft.
        prompt_lookup: shortest and longest end that n-gram lookup looks for.
        heterogeneous_vocab: whether draft and target may have different vocabularies.
        parallel_drafting: whether all tokens are drafted in one pass.
        nested: whether the release's nested spelling was used.
    """

    method: str | None
    model: str | None
    num_speculative_tokens: int | None
    draft_tensor_parallel_size: int | None
    max_model_len: int | None
    prompt_lookup: tuple[int, int]
    heterogeneous_vocab: bool
    parallel_drafting: bool
    nested: bool


@dataclass(frozen=True, kw_only=True)
class VLLMArguments:
    """What of model.json decides what the simulator does; all other known keys are checked by name only.

    Attributes:
        model: the target's directory.
        tensor_parallel_size: GPUs of a stage.
        pipeline_parallel_size: stages.
        max_model_len: None means the model's own.
        max_num_seqs: sequences in one batch.
        max_num_batched_tokens: tokens in one batch; None where vLLM chooses.
        enable_chunked_prefill: None where vLLM chooses.
        disable_log_stats: no statistics, and so no metrics.
        enable_lora: adapters are asked for.
        speculation: how tokens are drafted; None where they aren't.
    """

    model: Path
    tensor_parallel_size: int
    pipeline_parallel_size: int
    max_model_len: int | None
    max_num_seqs: int
    max_num_batched_tokens: int | None
    enable_chunked_prefill: bool | None
    disable_log_stats: bool
    enable_lora: bool
    speculation: SpeculativeFields | None


def parse_arguments(document: Any, version: str = VLLM_VERSION) -> VLLMArguments:
    """Parse model.json as a version's AsyncEngineArgs and SpeculativeConfig would.

    Raises:
        ParameterError: a key that the release doesn't know, or a value that it refuses.
    """
    release = VLLMRelease.read(version)
    if not isinstance(document, dict):
        raise ParameterError("model.json: must be an object of AsyncEngineArgs' arguments")
    unknown = sorted(set(document) - release.engine)
    if unknown:
        raise ParameterError(f"AsyncEngineArgs.__init__() got an unexpected keyword argument '{unknown[0]}'")
    if not isinstance(document.get("model"), str):
        raise ParameterError("model.json: model: a path or a name is required; vLLM would load facebook/opt-125m")
    for key in _INTEGERS:
        _whole(document, key)
    return VLLMArguments(
        model=Path(document["model"]),
        tensor_parallel_size=document.get("tensor_parallel_size", 1),
        pipeline_parallel_size=document.get("pipeline_parallel_size", 1),
        max_model_len=document.get("max_model_len"),
        max_num_seqs=document.get("max_num_seqs") or _DEFAULT_MAX_NUM_SEQS,
        max_num_batched_tokens=document.get("max_num_batched_tokens"),
        enable_chunked_prefill=document.get("enable_chunked_prefill"),
        disable_log_stats=bool(document.get("disable_log_stats", False)),
        enable_lora=str(document.get("enable_lora", False)).lower() == "true",
        speculation=_speculation(document, release),
    )


def _speculation(document: Mapping[str, Any], release: VLLMRelease) -> SpeculativeFields | None:
    if document.get("speculative_config") is not None:
        return _nested(document["speculative_config"], release)
    flat = {name: document[key] for key, name in _FLAT.items() if document.get(key) is not None}
    if not flat:
        return None
    if "model" not in flat and "num_speculative_tokens" not in flat:
        return None
    if flat.get("model") == "[ngram]" and not flat.get("prompt_lookup_max"):
        raise ParameterError(f"ngram_prompt_lookup_max={flat.get('prompt_lookup_max')} must be > 0")
    # Here alone the shortest is 1 where it is left out.
    return _fields({"prompt_lookup_min": 1} | flat, nested=False)


def _nested(fields: Any, release: VLLMRelease) -> SpeculativeFields:
    if not isinstance(fields, dict):
        raise ParameterError(f"speculative_config: must be an object, not {fields!r}")
    unknown = sorted(set(fields) - release.speculative_config)
    if unknown:
        raise ParameterError(
            f"1 validation error for SpeculativeConfig: {unknown[0]}: Unexpected keyword argument"
            f" (SpeculativeConfig.__init__() of vLLM {release.version})"
        )
    if fields.get("tensor_parallel_size") is not None:
        raise ParameterError(
            "'tensor_parallel_size' is not a valid argument in the speculative_config. Please pass"
            " 'draft_tensor_parallel_size' instead."
        )
    method, values = fields.get("method"), release.says.get("values")
    if method is not None and values is not None and method not in values:
        raise ParameterError(
            f"1 validation error for SpeculativeConfig: method: Input should be {', '.join(values)}, not {method!r}"
        )
    return _fields(fields, nested=True)


def _fields(fields: Mapping[str, Any], *, nested: bool) -> SpeculativeFields:
    for key in ("num_speculative_tokens", "draft_tensor_parallel_size", "max_model_len"):
        _whole(fields, key)
    count = fields.get("num_speculative_tokens")
    if count is not None and count <= 0:
        raise ParameterError(f"Expected num_speculative_tokens to be greater than zero ({count}).")
    batch = fields.get("disable_by_batch_size")
    if batch is not None and batch < 2:
        raise ParameterError(
            f"Expect the batch size threshold of disabling speculative decoding is > 1, but got {batch}"
        )
    return SpeculativeFields(
        method=fields.get("method"),
        model=fields.get("model"),
        num_speculative_tokens=count,
        draft_tensor_parallel_size=fields.get("draft_tensor_parallel_size"),
        max_model_len=fields.get("max_model_len"),
        prompt_lookup=_lookup(fields),
        heterogeneous_vocab=bool(fields.get("use_heterogeneous_vocab", False)),
        parallel_drafting=bool(fields.get("parallel_drafting", False)),
        nested=nested,
    )


def _lookup(fields: Mapping[str, Any]) -> tuple[int, int]:
    shortest, longest = fields.get("prompt_lookup_min"), fields.get("prompt_lookup_max")
    shortest, longest = (
        shortest if shortest is not None else longest if longest is not None else _DEFAULT_LOOKUP,
        longest if longest is not None else shortest if shortest is not None else _DEFAULT_LOOKUP,
    )
    for name, value in (("prompt_lookup_min", shortest), ("prompt_lookup_max", longest)):
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ParameterError(f"{name}={value!r} must be > 0")
    if shortest > longest:
        raise ParameterError(f"prompt_lookup_min={shortest} must be <= prompt_lookup_max={longest}")
    return shortest, longest


def _whole(fields: Mapping[str, Any], key: str) -> None:
    value = fields.get(key)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        if key == "num_speculative_tokens" and isinstance(value, int) and not isinstance(value, bool):
            return  # it has its own words for a number that is too small
        raise ParameterError(f"{key}: Input should be a whole number above 0, not {value!r}")

"""Sampling parameters of a request to the vLLM backend."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from packaging.version import Version

from testbed.runtime.simulator.errors import RequestError

if TYPE_CHECKING:
    from testbed.runtime.simulator.vllm_releases import VLLMRelease

_DEFAULT_MAX_TOKENS: Final = 16
_SHAPING: Final = ("frequency_penalty", "logit_bias", "logprobs", "min_p", "presence_penalty", "repetition_penalty")
_REFUSES_SHAPING: Final = Version("0.17.0")
_DRAFTS_ALWAYS: Final = Version("0.14.0")
_OWN: Final = frozenset({"lora_name"})


@dataclass(frozen=True)
class SamplingParameters:
    """What of SamplingParams the simulator heeds.

    Attributes:
        max_tokens: limit of new tokens.
        temperature: 0 chooses greedily.
        seed: of the draws.
        ignore_eos: write on past the end mark.
        shaped: which parameters reshape the scores; the simulator leaves the scores as they are.
    """

    max_tokens: int = _DEFAULT_MAX_TOKENS
    temperature: float = 1.0
    seed: int = 0
    ignore_eos: bool = False
    shaped: frozenset[str] = frozenset()


def parse_sampling(text: str, release: VLLMRelease) -> SamplingParameters:
    """Parse the JSON that a client sends.

    Raises:
        RequestError: it is no JSON object, holds what the release doesn't know, or a bad value.
    """
    try:
        fields: Any = json.loads(text) if text else {}
    except ValueError as problem:
        raise RequestError(f"sampling_parameters is not JSON: {problem}") from problem
    if not isinstance(fields, dict):
        raise RequestError(f"sampling_parameters must be a JSON object, not {text!r}")
    unknown = sorted(set(fields) - release.sampling - _OWN)
    if unknown:
        raise RequestError(f"Unexpected keyword argument '{unknown[0]}'")
    return _checked(fields)


def check_sampling(sampling: SamplingParameters, release: VLLMRelease) -> None:
    """Refuse what a release refuses beside speculation.

    Raises:
        RequestError: one of the parameters is refused.
    """
    if release.version >= _REFUSES_SHAPING and sampling.shaped & {"min_p", "logit_bias"}:
        raise RequestError(
            "The min_p and logit_bias sampling parameters are not yet supported with speculative decoding."
        )


def skips_speculation(sampling: SamplingParameters, release: VLLMRelease) -> bool:
    """Whether a release silently answers such a request without its draft."""
    return release.version < _DRAFTS_ALWAYS and bool(sampling.shaped - {"logit_bias"})


def _checked(fields: dict[str, Any]) -> SamplingParameters:
    try:
        # Triton's own request parameters arrive as text or as numbers, as the client wrote them.
        limit, temperature = int(fields.get("max_tokens") or _DEFAULT_MAX_TOKENS), float(fields.get("temperature", 1.0))
        parameters = SamplingParameters(
            max_tokens=limit,
            temperature=0.0 if fields.get("top_k") == 1 else temperature,
            seed=int(fields.get("seed") or 0),
            ignore_eos=bool(fields.get("ignore_eos")),
            shaped=frozenset(name for name in _SHAPING if fields.get(name)),
        )
    except (TypeError, ValueError) as problem:
        raise RequestError(f"sampling_parameters: {problem}") from problem
    if parameters.max_tokens < 1:
        raise RequestError(f"max_tokens must be at least 1, got {parameters.max_tokens}.")
    if parameters.temperature < 0:
        raise RequestError(f"temperature must be non-negative, got {parameters.temperature}.")
    return parameters

"""How vLLM is told to speculate: `speculative_config` from 0.8.3 on, keys of their own before.

The method is always named where it can be: vLLM guesses it from the draft's path otherwise, and ours tells nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from specdec_operator.runtimes.serving import MODEL_DIRECTORIES, Derived
from specdec_operator.runtimes.vllm_arguments import is_first_engine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from specdec_operator.runtimes.serving import ServingRequest
    from specdec_operator.runtimes.table import VllmSupport

_METHODS = {"Eagle": "eagle", "Eagle3": "eagle3", "Medusa": "medusa", "DraftTarget": "draft_model", "NGram": "ngram"}
_LOOKUP_TOKENS = 5
_EAGLE_DIRECTORY = "/models/eagle-draft"
"""Up to vLLM 0.8.4 a head is one by `eagle-` in its path alone, whatever method is named."""
_ONE_MTP = "0.11.0"
"""From here on MTP has one name, and finds the target by itself for every architecture."""
_FLAT_KEYS = {
    "model": "speculative_model",
    "num_speculative_tokens": "num_speculative_tokens",
    "draft_tensor_parallel_size": "speculative_draft_tensor_parallel_size",
    "prompt_lookup_max": "ngram_prompt_lookup_max",
    "prompt_lookup_min": "ngram_prompt_lookup_min",
}


def draft_directory(request: ServingRequest) -> str:
    """Where the draft is mounted."""
    return _EAGLE_DIRECTORY if request.method == "Eagle" else MODEL_DIRECTORIES["draft"]


def speculation(request: ServingRequest, support: VllmSupport) -> dict[str, Any]:
    """The engine arguments that make vLLM speculate; none for the baseline.

    Raises:
        ValueError: vLLM has no such method; resolution refuses that before.
    """
    if request.method == "None":
        return {}
    config = _config(request, support)
    if support.configuration == "Nested":
        return {"speculative_config": config}
    return _flat(config)


def _config(request: ServingRequest, support: VllmSupport) -> dict[str, Any]:
    length = {"num_speculative_tokens": request.draft_tokens}
    if request.method == "MTP":
        if support.at_least(_ONE_MTP):
            return {"method": "mtp", **length}
        return {"method": "deepseek_mtp", "model": MODEL_DIRECTORIES["target"], **length}
    if request.method not in _METHODS:
        raise ValueError(f"vLLM has no method {request.method}")
    named = {"method": _METHODS[request.method]}
    if request.method == "NGram":
        return {**named, **length, **_lookup(request, support)}
    return {**named, "model": draft_directory(request), **length, **_draft_split(request, support)}


def _lookup(request: ServingRequest, support: VllmSupport) -> dict[str, int]:
    options = request.speculation.n_gram
    longest = options.max_matching_length if options else None
    shortest = options.min_matching_length if options else None
    # vLLM's own rules for what is left out, written out: flat keys know no default of the longest.
    usual = 1 if support.configuration == "Flat" else longest or _LOOKUP_TOKENS
    return {
        "prompt_lookup_max": longest or shortest or _LOOKUP_TOKENS,
        "prompt_lookup_min": shortest or usual,
    }


def _draft_split(request: ServingRequest, support: VllmSupport) -> dict[str, int]:
    """A draft's tensor parallelism: 1 or the target's; the newer engine splits a draft as its target."""
    first = is_first_engine(request, support)
    if request.method != "DraftTarget":
        # The first engine refuses to split a head; the newer one splits it as its target, unasked.
        return {"draft_tensor_parallel_size": 1} if first else {}
    declared = request.draft_parallelism.tensor if request.draft_parallelism else 1
    own = declared if first else request.target_parallelism.tensor
    # Left out it is the target's; vLLM 0.6.3 takes no number but 1.
    return {"draft_tensor_parallel_size": 1} if own == 1 else {}


def derived_split(request: ServingRequest, support: VllmSupport, config: Mapping[str, Any]) -> tuple[Derived, ...]:
    """The draft's tensor parallelism where it is another than the spec says, which this vLLM can't follow.

    Args:
        config: What `speculation` gave.
    """
    if request.draft_parallelism is None or request.method not in ("DraftTarget", "Eagle", "Eagle3"):
        return ()
    inner = config.get("speculative_config", config)
    key = "draft_tensor_parallel_size"
    used = inner.get(key) or inner.get(_FLAT_KEYS[key]) or request.target_parallelism.tensor
    if used == request.draft_parallelism.tensor:
        return ()
    why = "splits no head" if used == 1 else "splits a draft as its target"
    reason = f"vLLM {support.version} {why}"
    return (Derived(name="draft.parallelism.tensor", value=str(used), reason=reason),)


def _flat(config: dict[str, Any]) -> dict[str, Any]:
    if config["method"] == "ngram":
        config = {"model": "[ngram]", **config}
    return {_FLAT_KEYS[key]: value for key, value in config.items() if key in _FLAT_KEYS}

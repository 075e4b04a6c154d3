"""How long a text a model takes: the positions that it was published with, and how its rotary embedding stretches them.

The rule is vLLM's: `_get_and_verify_max_len` in vllm/config.py, from 0.11 in vllm/config/model.py, read in three stored
versions of 2025 and 2026, of which the last reads `rope_parameters`. TensorRT-LLM's is the same (`_init_max_seq_len`,
tensorrt_llm/builder.py), but its LLM API does not stretch by YaRN, and takes no longer text than it infers
(`infer_max_seq_len`, _torch/models/modeling_utils.py; `_init_max_seq_len`, _torch/pyexecutor/model_engine.py; four
stored versions of 2025 and 2026; which tags they are of is inferred). Transformers renamed `rope_scaling` to
`rope_parameters` in version 5, where each kind of layer may have its own.
"""

import math
from collections.abc import Mapping
from typing import Any

from specdec_operator.pod.published_config import CONTEXT_LENGTH, PublishedConfig

_UNTOLD = 2048
"""What both runtimes, and the classes of Llama and Falcon, take where config.json names no positions."""
_PUBLISHED_STRETCHED = ("su", "longrope", "llama3")
"""Kinds whose positions are those of the stretched text already."""
_STRETCHED_FAMILIES = ("gemma3",)
"""Families likewise, whatever their kind of scaling."""
_YARN = "yarn"
_ORIGINAL = "original_max_position_embeddings"
_LONGEST = 2**31


def context_length(config: PublishedConfig) -> int:
    """The longest text, in tokens, that a model was made for.

    Raises:
        ProgramFailure: UnsupportedConfig, the positions or what stretches them are no such numbers.
    """
    length: float = positions(config)
    if config.family.startswith(_STRETCHED_FAMILIES):
        return int(length)
    factor = 1.0
    for part in _rotary(config):
        kind = _kind(part)
        if kind not in _PUBLISHED_STRETCHED:
            factor = _factor(config, part) or factor
        if kind == _YARN:
            length = _original(config, part)
    stretched = int(length * factor)
    if not 0 < stretched < _LONGEST:
        raise config.unsupported(_key(config), "such that the context is a positive number of tokens")
    return stretched


def positions(config: PublishedConfig) -> int:
    """The positions that config.json names.

    Raises:
        ProgramFailure: UnsupportedConfig, they are no positive integer.
    """
    return config.optional_integer(CONTEXT_LENGTH) or _UNTOLD


def unstretched_context_length(config: PublishedConfig) -> int | None:
    """What TensorRT-LLM's LLM API takes for the context; None if it takes the same as vLLM.

    Raises:
        ProgramFailure: UnsupportedConfig, as `context_length`.
    """
    if not any(_kind(part) == _YARN for part in _rotary(config)):
        return None
    published = positions(config)
    return published if published != context_length(config) else None


def _rotary(config: PublishedConfig) -> list[Mapping[str, Any]]:
    """The settings of the rotary embedding: one for all layers, or one for each kind of layer."""
    found = config.part(_key(config))
    nested: list[Mapping[str, Any]] = [value for value in found.values() if isinstance(value, dict)]
    return nested if nested and not {"rope_type", "type", "factor"} & set(found) else [found]


def _key(config: PublishedConfig) -> str:
    return "rope_parameters" if config.part("rope_parameters") else "rope_scaling"


def _kind(part: Mapping[str, Any]) -> str:
    return str(part.get("rope_type") or part.get("type") or "default")


def _factor(config: PublishedConfig, part: Mapping[str, Any]) -> float:
    """How many times as long the text may be; 0 if nothing is said."""
    value = part.get("factor")
    if value is None:
        return 0.0
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < _LONGEST:
        raise config.unsupported(_key(config), "settings whose factor is a positive number")
    return float(value)


def _original(config: PublishedConfig, part: Mapping[str, Any]) -> int:
    value = part.get(_ORIGINAL)
    if value is None:
        return config.optional_integer((_ORIGINAL,)) or positions(config)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 1 <= value < _LONGEST or math.isnan(value):
        raise config.unsupported(_key(config), f"settings whose {_ORIGINAL} is a positive integer")
    return int(value)

"""What one model takes of each GPU that it is split over: an estimate from its facts, rather too low than too high."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from specdec_operator.api.v1alpha1.model import Model, Parallelism
    from specdec_operator.api.v1alpha1.model_facts import ModelFacts
    from specdec_operator.api.v1alpha1.quantization import QuantizationFormat

_GIB: Final = 1024**3
_CONTEXT: Final = _GIB // 2
"""A process's CUDA context and kernels."""
_LEAST_WORKSPACE: Final = _GIB // 2
_WORKSPACE_PERCENT: Final = 5
"""Activations, beside the weights on the same GPU."""
_LOGIT_BYTES: Final = 4
_WITHOUT_CACHE: Final = ("MedusaHeads", "ReDrafterHead")
_PERCENT: Final[Mapping[QuantizationFormat, int]] = {
    "FP8": 50,
    "INT8SmoothQuant": 50,
    "INT8WeightOnly": 50,
    "INT4AWQ": 28,
    "W4A8AWQ": 28,
    "INT4WeightOnly": 28,
    "NVFP4": 28,
}
"""Weights beside 16 bits, scales included; embedding and output stay at 16."""


@dataclass(frozen=True, kw_only=True)
class Share:
    """Bytes on each GPU.

    Attributes:
        weights: Of the weights.
        working: Of all that is neither weights nor cache.
        token: Of one token in the key-value cache.
    """

    weights: int
    working: int
    token: int


def share_of(
    facts: ModelFacts,
    model: Model,
    *,
    parallelism: Parallelism,
    rows: int,
    windowed: bool,
    head: ModelFacts | None = None,
) -> Share:
    """What a model takes, with the head that runs inside it.

    Args:
        parallelism: How it is split.
        rows: Rows of logits that are kept at once: requests times tokens of one step.
        windowed: Whether the runtime keeps no more of a layer's cache than its window.
        head: The head.
    """
    weights = weight_bytes(facts, model) // parallelism.ranks
    token = _token_bytes(facts, model, parallelism, windowed=windowed)
    if head is not None:
        # a head is split like its target's layers, and lies on the last of its stages
        weights += _sixteen_bits(head) // parallelism.tensor
        token += _token_bytes(head, model, parallelism, windowed=windowed)
    working = _CONTEXT + _LEAST_WORKSPACE + weights * _WORKSPACE_PERCENT // 100
    return Share(weights=weights, working=working + rows * facts.vocabulary_size * _LOGIT_BYTES, token=token)


def weight_bytes(facts: ModelFacts, model: Model) -> int:
    """Bytes of a model's weights as they are served, over all GPUs."""
    whole = _sixteen_bits(facts)
    if model.quantization is None:
        return whole
    kept = min(whole, 2 * facts.vocabulary_size * facts.hidden_size * 2)
    return kept + (whole - kept) * _PERCENT[model.quantization.format] // 100


def _sixteen_bits(facts: ModelFacts) -> int:
    # What is published in 32 bits is loaded in 16; what is published in fewer, as it is.
    return facts.weight_bytes // 2 if facts.data_type == "float32" and not facts.quantization else facts.weight_bytes


def _token_bytes(facts: ModelFacts, model: Model, parallelism: Parallelism, *, windowed: bool) -> int:
    if facts.kind in _WITHOUT_CACHE:
        return 0
    value_bytes = 1 if model.quantization and model.quantization.key_value_cache_data_type else 2
    whole = (facts.full_attention_layers if windowed else None) or facts.layers
    layers = max(1, whole // parallelism.pipeline) + (facts.next_token_layers or 0)
    if facts.latent_size:
        return layers * facts.latent_size * value_bytes
    heads = max(1, facts.key_value_heads // parallelism.tensor)
    return 2 * layers * heads * facts.head_size * value_bytes

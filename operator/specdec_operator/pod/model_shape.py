"""The shape of a model or head: the facts that its configuration and its tensors tell, as keys of `Facts`."""

from typing import Any

from specdec_operator.pod.context_length import context_length, unstretched_context_length
from specdec_operator.pod.draft_kind import EAGLE3_HEAD, draft_vocabulary, fused_width, medusa_shape
from specdec_operator.pod.errors import ProgramFailure
from specdec_operator.pod.published_config import (
    ATTENTION_HEADS,
    FULL_ATTENTION_INTERVAL,
    HIDDEN_SIZE,
    INTERMEDIATE_SIZE,
    KEY_VALUE_HEADS,
    LAYERS,
    NEXT_TOKEN_LAYERS,
    VOCABULARY_SIZE,
    PublishedConfig,
)
from specdec_operator.pod.tensors import Shapes

WITHOUT_CONTEXT = 2**31 - 1
"""The context length of heads that attend to nothing: no text is too long for them."""


def of_transformer(config: PublishedConfig, kind: str, shapes: Shapes) -> dict[str, Any]:
    """A whole model, or an EAGLE head.

    Raises:
        ProgramFailure: UnsupportedConfig.
    """
    hidden_size = config.integer(HIDDEN_SIZE)
    attention_heads = config.integer(ATTENTION_HEADS)
    latent = config.optional_integer(("kv_lora_rank",))
    return {
        "vocabulary_size": config.integer(VOCABULARY_SIZE),
        "draft_vocabulary_size": draft_vocabulary(config, shapes)
        if kind == EAGLE3_HEAD
        else config.optional_integer(("draft_vocab_size",)),
        "layers": config.integer(LAYERS),
        "hidden_size": hidden_size,
        "attention_heads": attention_heads,
        "key_value_heads": _key_value_heads(config, attention_heads),
        "head_size": config.optional_integer(("head_dim",)) or max(1, hidden_size // attention_heads),
        "context_length": context_length(config),
        "unstretched_context_length": unstretched_context_length(config),
        "intermediate_size": config.optional_integer(INTERMEDIATE_SIZE),
        "full_attention_layers": _full_attention_layers(config),
        "latent_size": latent + (config.optional_integer(("qk_rope_head_dim",)) or 0) if latent else None,
        "target_hidden_size": _target_hidden_size(config, kind, shapes),
        "next_token_layers": config.count(NEXT_TOKEN_LAYERS),
    }


def _key_value_heads(config: PublishedConfig, attention_heads: int) -> int:
    # Falcon's first architecture names as many key-value heads as there are others, and has one
    if config.values.get("multi_query") is True and not config.values.get("new_decoder_architecture"):
        return 1
    return config.optional_integer(KEY_VALUE_HEADS) or attention_heads


def _full_attention_layers(config: PublishedConfig) -> int | None:
    """How many layers look at the whole text; None if all of them do."""
    layers, kinds = config.integer(LAYERS), config.values.get("layer_types")
    full = kinds.count("full_attention") if isinstance(kinds, list) else _patterned(config, layers)
    return max(1, full) if full < layers else None


def _patterned(config: PublishedConfig, layers: int) -> int:
    """Full layers by what repeats: every how manieth it is, also as text, or a letter for each as in `LLLG`.

    What says something else says nothing here: all layers are counted, which takes more memory rather than less.
    """
    told = next((config.values[key] for key in FULL_ATTENTION_INTERVAL if config.values.get(key) is not None), None)
    if isinstance(told, str) and told.isascii() and told.isdigit():
        told = int(told[:9])
    if isinstance(told, str) and set(told.upper()) == {"L", "G"}:
        whole, rest = divmod(layers, len(told))
        return whole * told.upper().count("G") + told[:rest].upper().count("G")
    return layers // told if isinstance(told, int) and told > 0 else layers


def _target_hidden_size(config: PublishedConfig, kind: str, shapes: Shapes) -> int | None:
    """The width of the target that an EAGLE-3 head was made for, where it is not the head's own."""
    if kind != EAGLE3_HEAD:
        return None
    declared = config.optional_integer(("target_hidden_size",))
    fused = fused_width(shapes)
    return declared or (fused // 3 if fused and fused % 3 == 0 else None)


def of_medusa_heads(config: PublishedConfig, shapes: Shapes) -> dict[str, Any]:
    """MEDUSA heads, counted in the weights.

    Raises:
        ProgramFailure: UnsupportedConfig.
    """
    shown = medusa_shape(shapes)
    if shown is None:
        raise ProgramFailure(
            "UnsupportedConfig",
            f"{config.path.parent}: config.json speaks of MEDUSA heads and the weights hold none; give the directory "
            "with medusa_lm_head.safetensors or medusa_lm_head.pt",
        )
    vocabulary = shown.vocabulary or config.optional_integer(VOCABULARY_SIZE)
    if vocabulary is None:
        raise config.unsupported("vocab_size", "a positive integer, since the heads have no output of their own")
    layers = config.optional_integer(("medusa_num_layers",)) or shown.layers
    return {
        **_without_attention(shown.hidden_size),
        "vocabulary_size": vocabulary,
        "draft_vocabulary_size": None,
        "layers": layers,
        "medusa_heads": shown.heads,
        "medusa_layers": layers,
    }


def of_drafter(config: PublishedConfig) -> dict[str, Any]:
    """A ReDrafter drafter.

    Raises:
        ProgramFailure: UnsupportedConfig.
    """
    return {
        **_without_attention(config.integer(HIDDEN_SIZE)),
        "vocabulary_size": config.integer(VOCABULARY_SIZE),
        "draft_vocabulary_size": None,
        "layers": config.integer(("num_draft_layers",)),
        "intermediate_size": config.integer(("exit_dim",)),
    }


def _without_attention(hidden_size: int) -> dict[str, Any]:
    return {
        "hidden_size": hidden_size,
        "attention_heads": 1,
        "key_value_heads": 1,
        "head_size": hidden_size,
        "context_length": WITHOUT_CONTEXT,
    }

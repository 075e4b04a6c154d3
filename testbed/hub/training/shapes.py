"""The tiny models' shapes, and the files that describe them as Hugging Face repositories do."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

BOS_ID, EOS_ID, UNKNOWN_ID = 1, 2, 0
CAPTURED_LAYERS = (1, 2, 3)
MAX_POSITIONS = 2048
_EPSILON = 1e-5
_ROPE_THETA = 10000.0


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Widths of a Llama model, in elements."""

    hidden: int
    layers: int
    heads: int
    key_value_heads: int
    head_dim: int
    intermediate: int
    vocabulary: int
    epsilon: float = _EPSILON
    rope_theta: float = _ROPE_THETA


@dataclass(frozen=True, kw_only=True)
class MedusaShape:
    """Widths of MEDUSA heads; `declared_heads` is what config.json says, too few, as in the published ones."""

    heads: int
    declared_heads: int
    layers: int
    hidden: int
    vocabulary: int


@dataclass(frozen=True, kw_only=True)
class RedrafterShape:
    """Widths of a ReDrafter drafter; `exit_dim` is of its output layers."""

    layers: int
    hidden: int
    exit_dim: int
    vocabulary: int


TARGET = Shape(hidden=64, layers=4, heads=4, key_value_heads=2, head_dim=16, intermediate=176, vocabulary=512)
DRAFT = Shape(hidden=32, layers=2, heads=2, key_value_heads=1, head_dim=16, intermediate=80, vocabulary=512)
OTHER = Shape(hidden=32, layers=2, heads=2, key_value_heads=1, head_dim=16, intermediate=80, vocabulary=384)
HEAD = Shape(hidden=64, layers=1, heads=4, key_value_heads=2, head_dim=16, intermediate=176, vocabulary=512)
DRAFT_VOCABULARY = 384
EAGLE_HEAD = HEAD
MEDUSA = MedusaShape(heads=4, declared_heads=2, layers=1, hidden=64, vocabulary=512)
REDRAFTER = RedrafterShape(layers=2, hidden=64, exit_dim=128, vocabulary=512)
BASE_MODEL = "specdec-testbed/tiny-llama"


def write_llama_files(directory: Path, shape: Shape) -> None:
    """Write config.json and generation_config.json of a whole model."""
    fields = {"architectures": ["LlamaForCausalLM"], **_common(shape)}
    _write(directory / "config.json", fields)
    marks = {"bos_token_id": BOS_ID, "eos_token_id": EOS_ID}
    _write(directory / "generation_config.json", {"_from_model_config": True, **marks})


def write_head_files(directory: Path) -> None:
    """Write config.json of the EAGLE-3 head."""
    fields = {"architectures": ["LlamaForCausalLMEagle3"], **_common(HEAD)}
    fields["draft_vocab_size"] = DRAFT_VOCABULARY
    fields["eagle_config"] = {
        "eagle_aux_hidden_state_layer_ids": list(CAPTURED_LAYERS),
        "use_aux_hidden_state": True,
    }
    _write(directory / "config.json", fields)


def write_eagle_files(directory: Path) -> None:
    """Write config.json of the EAGLE-1 head: it says no more than a Llama model of one layer does."""
    _write(directory / "config.json", {"architectures": ["LlamaForCausalLM"], **_common(EAGLE_HEAD)})


def write_medusa_files(directory: Path) -> None:
    """Write config.json of the MEDUSA heads."""
    fields = {
        "medusa_num_heads": MEDUSA.declared_heads,
        "medusa_num_layers": MEDUSA.layers,
        "base_model_name_or_path": BASE_MODEL,
    }
    _write(directory / "config.json", fields)


def write_redrafter_files(directory: Path) -> None:
    """Write config.json of the ReDrafter drafter."""
    fields = {
        "architectures": ["Drafter"],
        "num_draft_layers": REDRAFTER.layers,
        "hidden_size": REDRAFTER.hidden,
        "exit_dim": REDRAFTER.exit_dim,
        "vocab_size": REDRAFTER.vocabulary,
        "rnn": True,
        "torch_dtype": "float16",
    }
    _write(directory / "config.json", fields)


def write_tokenizer_files(directory: Path) -> None:
    """Write tokenizer_config.json and special_tokens_map.json, beside tokenizer.json."""
    marks = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    added = {
        str(number): {
            "content": content,
            "lstrip": False,
            "normalized": False,
            "rstrip": False,
            "single_word": False,
            "special": True,
        }
        for number, content in ((UNKNOWN_ID, "<unk>"), (BOS_ID, "<s>"), (EOS_ID, "</s>"))
    }
    fields = {
        "add_bos_token": True,
        "add_eos_token": False,
        "added_tokens_decoder": added,
        "clean_up_tokenization_spaces": False,
        "model_max_length": MAX_POSITIONS,
        "tokenizer_class": "PreTrainedTokenizerFast",
        **marks,
    }
    _write(directory / "tokenizer_config.json", fields)
    _write(directory / "special_tokens_map.json", marks)


def _common(shape: Shape) -> dict[str, object]:
    return {
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": BOS_ID,
        "eos_token_id": EOS_ID,
        "head_dim": shape.head_dim,
        "hidden_act": "silu",
        "hidden_size": shape.hidden,
        "initializer_range": 0.02,
        "intermediate_size": shape.intermediate,
        "max_position_embeddings": MAX_POSITIONS,
        "mlp_bias": False,
        "model_type": "llama",
        "num_attention_heads": shape.heads,
        "num_hidden_layers": shape.layers,
        "num_key_value_heads": shape.key_value_heads,
        "pretraining_tp": 1,
        "rms_norm_eps": shape.epsilon,
        "rope_scaling": None,
        "rope_theta": shape.rope_theta,
        "tie_word_embeddings": False,
        "torch_dtype": "float16",
        "transformers_version": "4.56.0",
        "use_cache": True,
        "vocab_size": shape.vocabulary,
    }


def _write(file: Path, fields: Mapping[str, object]) -> None:
    file.write_text(json.dumps(fields, indent=2) + "\n")

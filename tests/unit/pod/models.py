"""Model directories for the tests."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.unit.pod.checkpoints import write_weights

if TYPE_CHECKING:
    from pathlib import Path

CONFIG: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "vocab_size": 512,
    "num_hidden_layers": 4,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "torch_dtype": "float16",
    "max_position_embeddings": 2048,
    "bos_token_id": 1,
    "eos_token_id": [2, 3],
}
TOKENIZER: dict[str, Any] = {
    "added_tokens": [{"id": 0, "content": "<s>", "special": True}],
    "model": {"type": "BPE", "vocab": {"<s>": 0, "a": 1, "b": 2, "ab": 3}, "merges": ["a b"]},
}


def write_model(
    directory: Path, *, config: dict[str, Any] | None = None, tokenizer: dict[str, Any] | None = None
) -> Path:
    """A small model directory; `config` is laid over CONFIG, None values remove a key."""
    directory.mkdir(parents=True, exist_ok=True)
    merged = {key: value for key, value in {**CONFIG, **(config or {})}.items() if value is not None}
    (directory / "config.json").write_text(json.dumps(merged))
    (directory / "tokenizer.json").write_text(json.dumps(tokenizer or TOKENIZER))
    write_weights(directory / "model.safetensors")
    return directory

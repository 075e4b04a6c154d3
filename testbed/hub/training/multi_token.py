"""Train a multi-token-prediction layer for the tiny target, and write both as one repository: see README.md."""

import argparse
import json
import shutil
from pathlib import Path
from typing import Any

import jax  # type: ignore[import-not-found]
import jax.numpy as jnp  # type: ignore[import-not-found]
import optax  # type: ignore[import-not-found]
from tokenizers import Tokenizer

from testbed.hub.training import corpus, network, shapes, train
from testbed.runtime.inference.safetensors import WEIGHTS_FILE, read_directory, write_tensors

STEPS = 150
UNROLLED = 3
_MODELS = Path(__file__).parents[1] / "models" / "specdec-testbed"
_PREFIX = f"model.layers.{shapes.TARGET.layers}."
_COPIED = ("generation_config.json", "special_tokens_map.json", "tokenizer.json", "tokenizer_config.json")


def main() -> None:
    """Train the layer on the target that lies in the models' folder, which stays as it is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--output", type=Path, default=_MODELS / "tiny-llama-mtp")
    arguments = parser.parse_args()
    lines = corpus.read_lines(Path(__file__).parent / "corpus.txt")
    batch = corpus.batch(lines, Tokenizer.from_file(str(_MODELS / "tiny-llama" / "tokenizer.json")))
    target = {name: jnp.asarray(value) for name, value in read_directory(_MODELS / "tiny-llama").items()}
    layer = _train(jax.random.PRNGKey(arguments.seed), target, batch)
    arguments.output.mkdir(parents=True, exist_ok=True)
    write_tensors(arguments.output / WEIGHTS_FILE, train.arrays({**target, **layer}), dtype="F16")
    _write_config(arguments.output)
    for name in _COPIED:
        shutil.copyfile(_MODELS / "tiny-llama" / name, arguments.output / name)


def _train(key: Any, target: dict[str, Any], batch: corpus.Batch) -> dict[str, Any]:
    tokens, weights = jnp.asarray(batch.tokens), jnp.asarray(batch.weights)
    logits, last = network.run_llama_to_last(target, tokens, shapes.TARGET)
    labels = jnp.argmax(logits, axis=-1)
    embedded = target["model.embed_tokens.weight"][tokens]

    def loss(parameters: dict[str, Any], rows: Any) -> Any:
        total, hidden = jnp.zeros(()), last[rows, :-1]
        for step in range(UNROLLED):
            # Pair i is the hidden state at i with the token at i + 1; it guesses what the target says after i + 1.
            guesses, out = network.run_multi_token(
                {**target, **parameters}, _PREFIX, hidden, embedded[rows, 1 + step :]
            )
            losses = optax.softmax_cross_entropy_with_integer_labels(guesses, labels[rows, 1 + step :])
            counted = weights[rows, 1 + step :]
            total += 0.8**step * jnp.sum(losses * counted) / jnp.sum(counted)
            hidden = out[:, :-1]
        return total

    initial = network.initial_multi_token(key, _PREFIX)
    return train.halves(train.descend(initial, loss, steps=STEPS, rows=len(batch.tokens)))


def _write_config(directory: Path) -> None:
    fields = json.loads((_MODELS / "tiny-llama" / "config.json").read_text())
    fields |= {
        "architectures": ["Glm4MoeForCausalLM"],
        "model_type": "glm4_moe",
        "num_nextn_predict_layers": 1,
        "first_k_dense_replace": shapes.TARGET.layers + 1,
        "partial_rotary_factor": 1.0,
        "use_qk_norm": False,
    }
    (directory / "config.json").write_text(json.dumps(fields, indent=2) + "\n")


if __name__ == "__main__":
    main()

"""Train the tiny models and write them as Hugging Face repositories: see README.md beside this file."""

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax  # type: ignore[import-not-found]
import jax.numpy as jnp  # type: ignore[import-not-found]
import numpy as np
import optax  # type: ignore[import-not-found]
from numpy.typing import NDArray
from tokenizers import Tokenizer

from testbed.hub.training import corpus, network, shapes
from testbed.hub.training.corpus import Batch, Line
from testbed.runtime.inference.safetensors import WEIGHTS_FILE, write_tensors

TARGET_STEPS = 340
DRAFT_STEPS = 145
HEAD_STEPS = 170
UNROLLED = 4
ROWS_PER_STEP = 128
_FOLDER = Path(__file__).parent


def main() -> None:
    """Train all models into the folder given on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--output", type=Path, default=_FOLDER.parent / "models" / "specdec-testbed")
    arguments = parser.parse_args()
    keys = jax.random.split(jax.random.PRNGKey(arguments.seed), 4)
    lines = corpus.read_lines(_FOLDER / "corpus.txt")
    tokenizer = corpus.train_tokenizer(lines, shapes.TARGET.vocabulary)
    batch = corpus.batch(lines, tokenizer)

    target = _train_llama(network.initial_llama(keys[0], shapes.TARGET), batch, shapes.TARGET, TARGET_STEPS)
    _write_llama(arguments.output / "tiny-llama", target, shapes.TARGET, tokenizer)
    draft = _train_llama(network.initial_llama(keys[1], shapes.DRAFT), batch, shapes.DRAFT, DRAFT_STEPS)
    _write_llama(arguments.output / "tiny-llama-draft", draft, shapes.DRAFT, tokenizer)
    _train_head(keys[2], target, batch, arguments.output / "tiny-llama-eagle3")
    _write_stranger(arguments.output / "tiny-llama-other-vocabulary", keys[3], lines)


def _train_llama(parameters: dict[str, Any], batch: Batch, shape: shapes.Shape, steps: int) -> dict[str, Any]:
    every_token, every_weight = jnp.asarray(batch.tokens), jnp.asarray(batch.weights)

    def loss(parameters: dict[str, Any], rows: Any) -> Any:
        tokens, weights = every_token[rows], every_weight[rows, 1:]
        logits, _ = network.run_llama(parameters, tokens, shape)
        losses = optax.softmax_cross_entropy_with_integer_labels(logits[:, :-1], tokens[:, 1:])
        return jnp.sum(losses * weights) / jnp.sum(weights)

    return halves(descend(parameters, loss, steps=steps, rows=len(batch.tokens)))


def _train_head(key: Any, target: dict[str, Any], batch: Batch, directory: Path) -> None:
    """Train the head on what the target itself would say after each token, over several own steps."""
    tokens = jnp.asarray(batch.tokens)
    logits, features = network.run_llama(target, tokens, shapes.TARGET)
    wanted = np.asarray(jnp.argmax(logits, axis=-1))
    kept, label_of = _draft_vocabulary(wanted, batch)
    labels = jnp.asarray(label_of[wanted])
    weights = jnp.asarray(batch.weights * (label_of[wanted] >= 0))
    embedded = target["model.embed_tokens.weight"][tokens]

    def loss(parameters: dict[str, Any], rows: Any) -> Any:
        total, hidden = jnp.zeros(()), features[rows, :-1] @ parameters["fc.weight"].T
        for step in range(UNROLLED):
            # Pair i is the hidden state at i with the token at i + 1; it guesses what the target says after i + 1.
            guesses, out = network.run_head(parameters, hidden, embedded[rows, 1 + step :])
            losses = optax.softmax_cross_entropy_with_integer_labels(guesses, jnp.maximum(labels[rows, 1 + step :], 0))
            counted = weights[rows, 1 + step :]
            total += 0.8**step * jnp.sum(losses * counted) / jnp.sum(counted)
            hidden = out[:, :-1]
        return total

    head = halves(descend(network.initial_head(key, len(kept)), loss, steps=HEAD_STEPS, rows=len(batch.tokens)))
    directory.mkdir(parents=True, exist_ok=True)
    shapes.write_head_files(directory)
    member = np.isin(np.arange(shapes.TARGET.vocabulary), kept)
    maps = {"d2t": kept - np.arange(len(kept)), "t2d": member}
    write_tensors(directory / WEIGHTS_FILE, {**arrays(head), **maps}, dtype="F16")


def _draft_vocabulary(wanted: NDArray[Any], batch: Batch) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the token ids that the head can say, and per token its place among them (-1: not there)."""
    counts = np.bincount(wanted[batch.weights > 0], minlength=shapes.TARGET.vocabulary)
    often = np.argsort(-counts, kind="stable")[: shapes.DRAFT_VOCABULARY]
    kept = np.sort(often).astype(np.int64)
    label_of = np.full(shapes.TARGET.vocabulary, -1, dtype=np.int64)
    label_of[kept] = np.arange(len(kept))
    return kept, label_of


def descend(
    parameters: dict[str, Any], loss: Callable[[dict[str, Any], Any], Any], *, steps: int, rows: int
) -> dict[str, Any]:
    """Return parameters after so many steps of gradient descent on the loss, which takes them and the chosen rows."""
    optimizer = optax.adamw(optax.warmup_cosine_decay_schedule(0.0, 4e-3, 30, steps, 1e-5), b2=0.99)
    state = optimizer.init(parameters)
    random = np.random.default_rng(rows)

    @partial(jax.jit, donate_argnums=(0, 1))
    def step(parameters: dict[str, Any], state: Any, chosen: Any) -> tuple[dict[str, Any], Any, Any]:
        value, gradients = jax.value_and_grad(loss)(parameters, chosen)
        updates, state = optimizer.update(gradients, state, parameters)
        return optax.apply_updates(parameters, updates), state, value

    for number in range(steps):
        chosen = random.choice(rows, min(ROWS_PER_STEP, rows), replace=False)
        parameters, state, value = step(parameters, state, jnp.asarray(chosen))
        if number % 50 == 0 or number == steps - 1:
            print(f"step {number} loss {float(value):.4f}", flush=True)
    return parameters


def halves(parameters: dict[str, Any]) -> dict[str, Any]:
    """Round to what the file will hold, so that a head is trained on the target that is served."""
    return {name: value.astype(jnp.float16).astype(jnp.float32) for name, value in parameters.items()}


def arrays(parameters: dict[str, Any]) -> dict[str, NDArray[Any]]:
    """Return parameters as numpy arrays."""
    return {name: np.asarray(value) for name, value in parameters.items()}


def _write_llama(directory: Path, parameters: dict[str, Any], shape: shapes.Shape, tokenizer: Tokenizer) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    write_tensors(directory / WEIGHTS_FILE, arrays(parameters), dtype="F16")
    shapes.write_llama_files(directory, shape)
    shapes.write_tokenizer_files(directory)
    tokenizer.save(str(directory / "tokenizer.json"))


def _write_stranger(directory: Path, key: Any, lines: list[Line]) -> None:
    """Write an untrained model with a vocabulary of its own: a draft that fits no target here."""
    backwards = [Line(line.answer[::-1], line.prompt[::-1]) for line in lines]
    tokenizer = corpus.train_tokenizer(backwards, shapes.OTHER.vocabulary)
    _write_llama(directory, network.initial_llama(key, shapes.OTHER), shapes.OTHER, tokenizer)


if __name__ == "__main__":
    main()

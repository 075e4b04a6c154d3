"""Train the EAGLE-1 head, the MEDUSA heads and the ReDrafter drafter of the target that lies there already."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax  # type: ignore[import-not-found]
import jax.numpy as jnp  # type: ignore[import-not-found]
import numpy as np
import optax  # type: ignore[import-not-found]
from tokenizers import Tokenizer

from testbed.hub.training import corpus, network, shapes
from testbed.hub.training.train import arrays, descend, halves
from testbed.runtime.inference.safetensors import WEIGHTS_FILE, read_tensors, write_tensors

EAGLE_STEPS = 260
MEDUSA_STEPS = 260
REDRAFTER_STEPS = 260
UNROLLED = 4
MEDUSA_WEIGHTS_FILE = "medusa_lm_head.safetensors"
_EMBEDDING = "model.embed_tokens.weight"
_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Lesson:
    """What the target makes of the corpus.

    Attributes:
        hidden: its hidden states after the final norm, [lines, length, hidden].
        embedded: the tokens' embeddings, [lines, length, hidden].
        wanted: what it would say after each token, [lines, length].
        weights: how much a guess of `wanted` counts, [lines, length].
        output: its `lm_head`, [vocabulary, hidden].
    """

    hidden: Any
    embedded: Any
    wanted: Any
    weights: Any
    output: Any


def main() -> None:
    """Train all three into the folder given on the command line; the target is read from there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--output", type=Path, default=_FOLDER.parent / "models" / "specdec-testbed")
    arguments = parser.parse_args()
    keys = jax.random.split(jax.random.PRNGKey(arguments.seed), 3)
    target = {name: jnp.asarray(value) for name, value in _target(arguments.output).items()}
    lesson = _lesson(target, arguments.output / "tiny-llama" / "tokenizer.json")
    _train_eagle(keys[0], lesson, target[_EMBEDDING], arguments.output / "tiny-llama-eagle")
    _train_medusa(keys[1], lesson, arguments.output / "tiny-llama-medusa")
    _train_redrafter(keys[2], lesson, arguments.output / "tiny-llama-redrafter")


def _target(folder: Path) -> dict[str, Any]:
    return read_tensors(folder / "tiny-llama" / WEIGHTS_FILE)


def _lesson(target: dict[str, Any], tokenizer: Path) -> Lesson:
    batch = corpus.batch(corpus.read_lines(_FOLDER / "corpus.txt"), Tokenizer.from_file(str(tokenizer)))
    tokens = jnp.asarray(batch.tokens)
    hidden = network.final_hidden(target, tokens, shapes.TARGET)
    wanted = jnp.argmax(hidden @ target["lm_head.weight"].T, axis=-1)
    # A guess stands one place before the token that it guesses, whose weight it takes.
    weights = np.concatenate((batch.weights[:, 1:], np.zeros((len(batch.weights), 1), np.float32)), axis=1)
    return Lesson(hidden, target[_EMBEDDING][tokens], wanted, jnp.asarray(weights), target["lm_head.weight"])


def _loss_of(guesses: Any, lesson: Lesson, rows: Any, *, ahead: int) -> Any:
    """Return the loss of guesses [lines, length - ahead, vocabulary] of what the target says `ahead` tokens later."""
    labels, counted = lesson.wanted[rows, ahead:], lesson.weights[rows, ahead:]
    losses = optax.softmax_cross_entropy_with_integer_labels(guesses, labels)
    return jnp.sum(losses * counted) / jnp.sum(counted)


def _train_eagle(key: Any, lesson: Lesson, embedding: Any, directory: Path) -> None:
    """Train the head to foresee the target's own hidden states, over several own steps."""

    def loss(parameters: dict[str, Any], rows: Any) -> Any:
        total, hidden = jnp.zeros(()), lesson.hidden[rows, :-1]
        for step in range(UNROLLED):
            out = network.run_eagle_head(parameters, hidden, lesson.embedded[rows, 1 + step :])
            apart = jnp.abs(out - lesson.hidden[rows, 1 + step :]).mean(axis=-1)
            counted = lesson.weights[rows, 1 + step :]
            near = jnp.sum(apart * counted) / jnp.sum(counted)
            total += 0.8**step * (near + _loss_of(out @ lesson.output.T, lesson, rows, ahead=1 + step))
            hidden = out[:, :-1]
        return total

    head = _train(network.initial_eagle_head(key), loss, lesson, steps=EAGLE_STEPS)
    directory.mkdir(parents=True, exist_ok=True)
    shapes.write_eagle_files(directory)
    tensors = {**arrays(head), "embed_tokens.weight": np.asarray(embedding)}
    write_tensors(directory / WEIGHTS_FILE, tensors, dtype="F16")


def _train_medusa(key: Any, lesson: Lesson, directory: Path) -> None:
    """Train each head to say what the target says so many tokens later."""

    def loss(parameters: dict[str, Any], rows: Any) -> Any:
        total = jnp.zeros(())
        for head in range(shapes.MEDUSA.heads):
            guesses = network.run_medusa_head(parameters, head, lesson.hidden[rows, : -1 - head])
            total += 0.8**head * _loss_of(guesses, lesson, rows, ahead=1 + head)
        return total

    heads = _train(network.initial_medusa_heads(key), loss, lesson, steps=MEDUSA_STEPS)
    directory.mkdir(parents=True, exist_ok=True)
    shapes.write_medusa_files(directory)
    write_tensors(directory / MEDUSA_WEIGHTS_FILE, arrays(heads), dtype="F16")


def _train_redrafter(key: Any, lesson: Lesson, directory: Path) -> None:
    """Train the drafter on the tokens that follow, its state fed with them one by one."""

    def loss(parameters: dict[str, Any], rows: Any) -> Any:
        total, embedded = jnp.zeros(()), lesson.embedded[rows]
        length = embedded.shape[1]
        state = embedded[:, 1:]
        for step in range(UNROLLED + 1):
            hidden = lesson.hidden[rows, : length - 1 - step]
            guesses = network.run_redrafter(parameters, state, hidden)
            total += 0.8**step * _loss_of(guesses, lesson, rows, ahead=1 + step)
            state = network.advance_redrafter(parameters, state[:, :-1], embedded[:, 2 + step :])
        return total

    drafter = _train(network.initial_redrafter(key), loss, lesson, steps=REDRAFTER_STEPS)
    directory.mkdir(parents=True, exist_ok=True)
    shapes.write_redrafter_files(directory)
    write_tensors(directory / WEIGHTS_FILE, arrays(drafter), dtype="F16")


def _train(
    parameters: dict[str, Any], loss: Callable[[dict[str, Any], Any], Any], lesson: Lesson, *, steps: int
) -> dict[str, Any]:
    return halves(descend(parameters, loss, steps=steps, rows=len(lesson.hidden)))


if __name__ == "__main__":
    main()

"""MEDUSA heads: each guesses a token so many places ahead, all from the target's last hidden state."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.runtime.inference.arithmetic import Array, linear, sigmoid_unit
from testbed.runtime.inference.eagle1 import ranked
from testbed.runtime.inference.errors import ModelFilesError, PairMismatchError
from testbed.runtime.inference.layer import Weights
from testbed.runtime.inference.llama import LlamaModel
from testbed.runtime.inference.safetensors import Tensor, read_tensors
from testbed.runtime.inference.tree import ROOT, DraftTree
from testbed.runtime.inference.tree_choices import Choices

WEIGHTS_FILE = "medusa_lm_head.safetensors"


def read_heads(directory: Path) -> dict[str, Tensor]:
    """Read the weights of a directory of heads.

    Raises:
        ModelFilesError: they are missing or damaged.
    """
    return read_tensors(directory / WEIGHTS_FILE)


def shipped_heads(names: Sequence[str]) -> int:
    """Return how many heads there are among the tensors; config.json of published ones says too few."""
    return len({name.split(".")[0] for name in names})


@dataclass(frozen=True)
class _Head:
    blocks: tuple[tuple[Array, Array], ...]
    output: Array


class MedusaHeads:
    """Loaded heads, bound to their target."""

    def __init__(self, tensors: Mapping[str, Tensor], target: LlamaModel, *, heads: int, layers: int) -> None:
        """Take the first `heads` heads, each of so many residual layers, under their published names.

        Raises:
            ModelFilesError: a tensor is missing or has another shape than the target's hidden size and vocabulary say.
        """
        shipped = shipped_heads(list(tensors))
        if heads > shipped:
            raise ModelFilesError(f"{heads} MEDUSA heads are wanted, but the weights hold {shipped}")
        self.target = target
        self._heads = [_take(Weights(tensors), target, number, layers) for number in range(heads)]

    @property
    def count(self) -> int:
        """How many heads there are."""
        return len(self._heads)

    def guesses(self, hidden: Array) -> list[Array]:
        """Return each head's logits [vocabulary] from the target's last final hidden state [1, hidden]."""
        return [_run(head, hidden)[0] for head in self._heads]


class MedusaDrafter:
    """Heads that draft a tree of choices: a node on level n is the so-manieth best guess of head n."""

    def __init__(self, heads: MedusaHeads, choices: Choices) -> None:
        """Take the heads and the tree, every node of it listed and parents before their children."""
        self.heads = heads
        self.choices = choices
        self.max_path_length = heads.count

    def begin(self, target: LlamaModel) -> "MedusaDrafter":
        """Begin a new sequence; raises PairMismatchError when the heads were loaded for another target."""
        if target is not self.heads.target:
            raise PairMismatchError("the heads were loaded for another target; load them with this one")
        return self

    def propose(self, tokens: Sequence[int], features: Array, depth: int) -> DraftTree:
        """Guess from the last hidden state alone; heads keep nothing of a sequence."""
        del tokens
        logits = self.heads.guesses(features[-1:])
        nodes = [node for node in self.choices if len(node) <= depth]
        numbers = {(): ROOT} | {node: number for number, node in enumerate(nodes)}
        guessed = tuple(ranked(logits[len(node) - 1], node[-1]) for node in nodes)
        return DraftTree(guessed, tuple(numbers[node[:-1]] for node in nodes))


def _take(weights: Weights, target: LlamaModel, number: int, layers: int) -> _Head:
    width = target.config.hidden_size
    prefixes = [f"{number}.{layer}.linear" for layer in range(layers)]
    blocks = tuple(
        (weights.linear(f"{prefix}.weight", width, width), weights.vector(f"{prefix}.bias", width))
        for prefix in prefixes
    )
    return _Head(blocks, weights.linear(f"{number}.{layers}.weight", width, target.config.vocab_size))


def _run(head: _Head, hidden: Array) -> Array:
    for weight, bias in head.blocks:
        hidden = hidden + sigmoid_unit(linear(hidden, weight) + bias)
    return linear(hidden, head.output)

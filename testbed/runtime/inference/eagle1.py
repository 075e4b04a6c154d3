"""EAGLE-1 heads: one layer that foresees the target's own final hidden states, and drafts a tree from them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from testbed.runtime.inference.arithmetic import Array, linear, root_mean_square_norm
from testbed.runtime.inference.cache import KeyValueCache
from testbed.runtime.inference.errors import ModelFilesError, PairMismatchError
from testbed.runtime.inference.layer import Attention, FeedForward, Weights
from testbed.runtime.inference.llama import LlamaConfig, LlamaModel
from testbed.runtime.inference.safetensors import Tensor, read_directory
from testbed.runtime.inference.tree import ROOT, DraftTree
from testbed.runtime.inference.tree_choices import Choices


class Eagle1Head:
    """A loaded head, bound to its target, whose language-model head it uses."""

    def __init__(self, config: LlamaConfig, tensors: Mapping[str, Tensor], target: LlamaModel) -> None:
        """Take weights under the names that published heads use.

        Raises:
            PairMismatchError: hidden size or vocabulary is not the target's.
            ModelFilesError: a tensor is missing or has another shape than the configuration says.
        """
        check_pair(config, target.config)
        width, weights = config.hidden_size, Weights(tensors)
        self.target = target
        self._epsilon = config.rms_norm_eps
        self._embedding = weights.matrix("embed_tokens.weight", config.vocab_size, width)
        self._fuse = weights.linear("fc.weight", width * 2, width)
        self._fuse_bias = weights.vector("fc.bias", width) if "fc.bias" in tensors else np.zeros(width, np.float32)
        prefix = "layers.0."
        self._attention = Attention.take(weights, prefix + "self_attn.", config.layer_shape, widths=(width, width))
        self._post_attention_norm = weights.vector(prefix + "post_attention_layernorm.weight", width)
        self._feed_forward = FeedForward.take(weights, prefix + "mlp.", widths=(width, config.intermediate_size))

    @classmethod
    def load(cls, directory: Path, target: LlamaModel) -> "Eagle1Head":
        """Load a head for a loaded target; raises what the constructor and `read_config` raise."""
        return cls(read_config(directory), read_directory(directory), target)

    def cache(self) -> KeyValueCache:
        """Return an empty cache for one sequence."""
        return KeyValueCache(1)

    def forward(self, hidden: Array, tokens: Sequence[int], cache: KeyValueCache) -> Array:
        """Run n new pairs, the hidden state at a position and the token after it; returns the next hidden states."""
        embedded = self._embedding[np.asarray(tokens, dtype=np.int64)]
        fused = linear(np.concatenate((embedded, hidden), axis=-1), self._fuse) + self._fuse_bias
        after = fused + self._attention.run(fused, cache, 0)
        normed = root_mean_square_norm(after, self._post_attention_norm, self._epsilon)
        cache.advance(len(tokens))
        out: Array = after + self._feed_forward.run(normed)
        return out


class Eagle1Drafter:
    """A head that drafts a tree of choices: a node is the n-th best guess after its parent."""

    def __init__(self, head: Eagle1Head, choices: Choices) -> None:
        """Take the head and the tree, every node of it listed and parents before their children."""
        self.head = head
        self.choices = choices
        self.max_path_length = max(len(node) for node in choices)

    def begin(self, target: LlamaModel) -> "_Eagle1Sequence":
        """Begin a new sequence; raises PairMismatchError when the head was loaded for another target."""
        if target is not self.head.target:
            raise PairMismatchError("the head was loaded for another target; load it with this one")
        return _Eagle1Sequence(self.head, self.choices)


class _Eagle1Sequence:
    def __init__(self, head: Eagle1Head, choices: Choices) -> None:
        self._head = head
        self._choices = choices
        self._parents = {node[:-1] for node in choices}
        self._cache = head.cache()
        self._verified = 0

    def propose(self, tokens: Sequence[int], features: Array, depth: int) -> DraftTree:
        # What earlier proposals left in the cache came from the head's own hidden states, not from the target's.
        self._cache.truncate(self._verified)
        hidden = self._head.forward(features[self._verified :], tokens[self._verified + 1 :], self._cache)
        self._verified = self._cache.length
        guessed: list[int] = []
        parents: list[int] = []
        numbers: dict[tuple[int, ...], int] = {(): ROOT}
        states: dict[tuple[int, ...], Array] = {(): hidden[-1:]}
        for node in self._choices:
            if len(node) > depth:
                break
            parent = node[:-1]
            guessed.append(ranked(self._head.target.score(states[parent])[-1], node[-1]))
            parents.append(numbers[parent])
            numbers[node] = len(guessed) - 1
            if node in self._parents and len(node) < depth:
                states[node] = self._after(node, numbers, guessed, states)
        return DraftTree(tuple(guessed), tuple(parents))

    def _after(
        self,
        node: tuple[int, ...],
        numbers: Mapping[tuple[int, ...], int],
        guessed: Sequence[int],
        states: Mapping[tuple[int, ...], Array],
    ) -> Array:
        """Run the path down to a node, as it would be attended to in a tree mask; returns its hidden state."""
        self._cache.truncate(self._verified)
        path = [node[:length] for length in range(1, len(node) + 1)]
        fed = np.concatenate([states[step[:-1]] for step in path])
        return self._head.forward(fed, [guessed[numbers[step]] for step in path], self._cache)[-1:]


def ranked(logits: Array, rank: int) -> int:
    """Return the token that scores n-th highest of logits [vocabulary], from 0; of equals, the lowest id first."""
    return int(np.argsort(-logits, kind="stable")[rank])


def read_config(directory: Path) -> LlamaConfig:
    """Read config.json of a head's directory.

    Raises:
        ModelFilesError: it is missing, is no Llama's, or has more than one layer.
    """
    config = LlamaConfig.read(directory)
    if config.num_hidden_layers != 1:
        raise ModelFilesError(
            f"{directory / 'config.json'}: num_hidden_layers is {config.num_hidden_layers}; an EAGLE-1 head has 1"
        )
    return config


def check_pair(head: LlamaConfig, target: LlamaConfig) -> None:
    """Check that a head's shapes are this target's.

    Raises:
        PairMismatchError: hidden size or vocabulary differ.
    """
    for name, own, wanted in (
        ("hidden_size", head.hidden_size, target.hidden_size),
        ("vocab_size", head.vocab_size, target.vocab_size),
    ):
        if own != wanted:
            raise PairMismatchError(f"the head's {name} is {own}, the target's {wanted}; use a head of this target")

"""EAGLE-3 draft heads: one layer that reads the target's hidden states and guesses the tokens after the next one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from testbed.runtime.inference.arithmetic import Array, linear, root_mean_square_norm
from testbed.runtime.inference.cache import KeyValueCache
from testbed.runtime.inference.errors import ModelFilesError, PairMismatchError
from testbed.runtime.inference.layer import Attention, FeedForward, Weights
from testbed.runtime.inference.llama import LlamaConfig, LlamaModel, read_json
from testbed.runtime.inference.safetensors import Tensor, read_directory

ARCHITECTURE = "LlamaForCausalLMEagle3"


@dataclass(frozen=True)
class Eagle3Config:
    """A head's config.json.

    Attributes:
        llama: widths of the head's one layer.
        draft_vocabulary: how many of the target's tokens the head can say.
        captured_layers: which hidden states of the target it reads, low to high; None leaves it to the target's depth.
    """

    llama: LlamaConfig
    draft_vocabulary: int
    captured_layers: tuple[int, ...] | None

    @classmethod
    def read(cls, directory: Path) -> "Eagle3Config":
        """Read config.json of a head's directory.

        Raises:
            ModelFilesError: it is missing, is no EAGLE-3 head, or has more than one layer.
        """
        file = directory / "config.json"
        llama = LlamaConfig.read(directory, architecture=ARCHITECTURE)
        if llama.num_hidden_layers != 1:
            raise ModelFilesError(f"{file}: num_hidden_layers is {llama.num_hidden_layers}; an EAGLE-3 head has 1")
        fields = read_json(file)
        layers = fields.get("eagle_config", {}).get("eagle_aux_hidden_state_layer_ids")
        return cls(llama, fields.get("draft_vocab_size", llama.vocab_size), tuple(layers) if layers else None)


def default_captured_layers(depth: int) -> tuple[int, int, int]:
    """Return which hidden states of a target of `depth` layers are read when the head doesn't say."""
    if depth < 3:
        raise PairMismatchError(f"an EAGLE-3 head reads three hidden states; the target has {depth} layers")
    return (2, depth // 2, depth - 3) if depth > 5 else (1, depth // 2, depth - 1)


@dataclass(frozen=True)
class HeadPass:
    """What the head gives per new pair: draft logits [n, draft_vocabulary] and its hidden state [n, hidden]."""

    logits: Array
    hidden: Array


class Eagle3Head:
    """A loaded head, bound to its target, whose token embedding it uses."""

    def __init__(self, config: Eagle3Config, tensors: Mapping[str, Tensor], target: LlamaModel) -> None:
        """Take weights under the names that published heads use.

        Raises:
            PairMismatchError: hidden size or vocabulary is not the target's.
            ModelFilesError: a tensor is missing or has another shape than the configuration says.
        """
        _check_pair(config.llama, target.config)
        self.target = target
        self.captured_layers = config.captured_layers or default_captured_layers(target.config.num_hidden_layers)
        self._check_captured()
        llama, weights = config.llama, Weights(tensors)
        width = llama.hidden_size
        self._epsilon = llama.rms_norm_eps
        self._fuse = weights.linear("fc.weight", width * len(self.captured_layers), width)
        self._embedding_norm = weights.vector("midlayer.input_layernorm.weight", width)
        self._hidden_norm = weights.vector("midlayer.hidden_norm.weight", width)
        self._attention = Attention.take(weights, "midlayer.self_attn.", llama.layer_shape, widths=(width * 2, width))
        self._post_attention_norm = weights.vector("midlayer.post_attention_layernorm.weight", width)
        self._feed_forward = FeedForward.take(weights, "midlayer.mlp.", widths=(width, llama.intermediate_size))
        self._norm = weights.vector("norm.weight", width)
        self._head = weights.linear("lm_head.weight", width, config.draft_vocabulary)
        self._target_ids = _target_ids(tensors, config)

    @classmethod
    def load(cls, directory: Path, target: LlamaModel) -> "Eagle3Head":
        """Load a head for a loaded target; raises what the constructor raises."""
        return cls(Eagle3Config.read(directory), read_directory(directory), target)

    def cache(self) -> KeyValueCache:
        """Return an empty cache for one sequence."""
        return KeyValueCache(1)

    def fuse(self, features: Array) -> Array:
        """Return target features [n, captured * hidden] as hidden states [n, hidden]."""
        return linear(features, self._fuse)

    def forward(self, hidden: Array, tokens: Sequence[int], cache: KeyValueCache) -> HeadPass:
        """Run n new pairs: the hidden state at a position, and the token after it."""
        epsilon = self._epsilon
        embedded = root_mean_square_norm(self.target.embed(tokens), self._embedding_norm, epsilon)
        normed = root_mean_square_norm(hidden, self._hidden_norm, epsilon)
        hidden = hidden + self._attention.run(np.concatenate((embedded, normed), axis=-1), cache, 0)
        normed = root_mean_square_norm(hidden, self._post_attention_norm, epsilon)
        hidden = hidden + self._feed_forward.run(normed)
        cache.advance(len(tokens))
        return HeadPass(linear(root_mean_square_norm(hidden, self._norm, epsilon), self._head), hidden)

    def best(self, logits: Array) -> int:
        """Return the target's id of the draft token that scores highest."""
        return int(self._target_ids[int(np.argmax(logits))])

    def _check_captured(self) -> None:
        depth = self.target.config.num_hidden_layers
        if not all(0 <= layer <= depth for layer in self.captured_layers):
            raise PairMismatchError(
                f"the head reads hidden states {list(self.captured_layers)}; the target has {depth} layers"
            )


def _check_pair(head: LlamaConfig, target: LlamaConfig) -> None:
    if head.hidden_size != target.hidden_size:
        raise PairMismatchError(
            f"the head's hidden_size is {head.hidden_size}, the target's {target.hidden_size};"
            " use a head made for this target"
        )
    if head.vocab_size != target.vocab_size:
        raise PairMismatchError(
            f"the head's vocab_size is {head.vocab_size}, the target's {target.vocab_size};"
            " use a head made for this target"
        )


def _target_ids(tensors: Mapping[str, Tensor], config: Eagle3Config) -> NDArray[np.int64]:
    """Return the target's id per draft id; d2t holds the differences."""
    own = np.arange(config.draft_vocabulary, dtype=np.int64)
    if "d2t" in tensors:
        return own + tensors["d2t"].astype(np.int64)
    if config.draft_vocabulary != config.llama.vocab_size:
        raise ModelFilesError("tensor 'd2t' is missing, but draft_vocab_size differs from vocab_size")
    return own

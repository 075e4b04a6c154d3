"""Multi-token prediction: a target's own extra layer that guesses the tokens after the next one.

The layout is GLM-4.5's (`Glm4MoeForCausalLM`), with every layer dense and rotary positions over the whole head, which
makes the target's arithmetic Llama's. The extra layer stands after the target's last one and shares its embedding and
its language-model head.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from testbed.runtime.inference.arithmetic import Array, linear, root_mean_square_norm
from testbed.runtime.inference.cache import KeyValueCache
from testbed.runtime.inference.drafters import DraftSequence
from testbed.runtime.inference.errors import ModelFilesError, PairMismatchError
from testbed.runtime.inference.layer import Attention, FeedForward, Weights
from testbed.runtime.inference.llama import LlamaConfig, LlamaModel, read_json
from testbed.runtime.inference.safetensors import Tensor, read_directory

ARCHITECTURE = "Glm4MoeForCausalLM"


def load_target(directory: Path) -> LlamaModel:
    """Load a target, with or without a layer for multi-token prediction.

    Raises:
        ModelFilesError: a file is missing, damaged, or of an architecture that is neither Llama nor this one.
    """
    if read_json(directory / "config.json").get("architectures") != [ARCHITECTURE]:
        return LlamaModel.load(directory)
    config = LlamaConfig.read(directory, architecture=ARCHITECTURE)
    _check_dense(directory, config.num_hidden_layers)
    return LlamaModel(config, read_directory(directory))


def predicted_layers(directory: Path) -> int:
    """Return `num_nextn_predict_layers` of a model's config.json; 0 where it isn't said.

    Raises:
        ModelFilesError: there is no readable config.json.
    """
    return int(read_json(directory / "config.json").get("num_nextn_predict_layers") or 0)


@dataclass(frozen=True)
class LayerPass:
    """What the layer gives per new pair: logits [n, vocabulary] and its hidden state [n, hidden]."""

    logits: Array
    hidden: Array


class MultiTokenLayer:
    """The loaded extra layer, bound to its target."""

    def __init__(self, target: LlamaModel, tensors: Mapping[str, Tensor], epsilon: float) -> None:
        """Take the weights under their published names.

        Raises:
            ModelFilesError: a tensor is missing or has another shape than the configuration says.
        """
        config, weights = target.config, Weights(tensors)
        width, prefix = config.hidden_size, f"model.layers.{config.num_hidden_layers}."
        self.target = target
        self._epsilon = epsilon
        self._embedding_norm = weights.vector(prefix + "enorm.weight", width)
        self._hidden_norm = weights.vector(prefix + "hnorm.weight", width)
        self._fuse = weights.linear(prefix + "eh_proj.weight", width * 2, width)
        self._input_norm = weights.vector(prefix + "input_layernorm.weight", width)
        self._attention = Attention.take(weights, prefix + "self_attn.", config.layer_shape, widths=(width, width))
        self._post_attention_norm = weights.vector(prefix + "post_attention_layernorm.weight", width)
        self._feed_forward = FeedForward.take(weights, prefix + "mlp.", widths=(width, config.intermediate_size))
        self._norm = weights.vector(prefix + "shared_head.norm.weight", width)
        self._head = weights.linear("lm_head.weight", width, config.vocab_size)

    @classmethod
    def load(cls, directory: Path, target: LlamaModel) -> "MultiTokenLayer":
        """Load the layer of a loaded target's directory.

        Raises:
            ModelFilesError: config.json declares no such layer, or the constructor refuses the weights.
        """
        if predicted_layers(directory) < 1:
            raise ModelFilesError(
                f"{directory / 'config.json'}: num_nextn_predict_layers is not set; the model has no layer for"
                " multi-token prediction"
            )
        return cls(target, read_directory(directory), target.config.rms_norm_eps)

    def cache(self) -> KeyValueCache:
        """Return an empty cache for one sequence."""
        return KeyValueCache(1)

    def forward(self, hidden: Array, tokens: Sequence[int], cache: KeyValueCache) -> LayerPass:
        """Run n new pairs: the hidden state at a position, and the token after it."""
        epsilon = self._epsilon
        embedded = root_mean_square_norm(self.target.embed(tokens), self._embedding_norm, epsilon)
        normed = root_mean_square_norm(hidden, self._hidden_norm, epsilon)
        hidden = linear(np.concatenate((embedded, normed), axis=-1), self._fuse)
        normed = root_mean_square_norm(hidden, self._input_norm, epsilon)
        hidden = hidden + self._attention.run(normed, cache, 0)
        normed = root_mean_square_norm(hidden, self._post_attention_norm, epsilon)
        hidden = hidden + self._feed_forward.run(normed)
        cache.advance(len(tokens))
        return LayerPass(linear(root_mean_square_norm(hidden, self._norm, epsilon), self._head), hidden)


class MultiTokenDrafter:
    """Drafts with the extra layer, which reads its own hidden state from the second token on."""

    def __init__(self, layer: MultiTokenLayer, max_draft_tokens: int) -> None:
        """Take the layer and how many tokens it proposes at a time.

        Raises:
            ValueError: the number is below 1.
        """
        if max_draft_tokens < 1:
            raise ValueError(f"max_draft_tokens is {max_draft_tokens}; it must be at least 1")
        self.layer = layer
        self.max_draft_tokens = max_draft_tokens
        self.captured_layers = (layer.target.config.num_hidden_layers,)

    def begin(self, target: LlamaModel) -> DraftSequence:
        """Begin a new sequence; raises PairMismatchError when the layer is another target's."""
        if target is not self.layer.target:
            raise PairMismatchError("the layer was loaded for another target; load it with this one")
        return _LayerSequence(self.layer)


class _LayerSequence:
    def __init__(self, layer: MultiTokenLayer) -> None:
        self._layer = layer
        self._cache = layer.cache()
        self._verified = 0

    def propose(self, tokens: Sequence[int], features: Array, count: int) -> list[int]:
        # Earlier proposals stand in the cache with the layer's own hidden states; the target's take their place.
        self._cache.truncate(self._verified)
        step = self._layer.forward(features[self._verified :], tokens[self._verified + 1 :], self._cache)
        self._verified = self._cache.length
        proposed = [int(np.argmax(step.logits[-1]))]
        while len(proposed) < count:
            step = self._layer.forward(step.hidden[-1:], proposed[-1:], self._cache)
            proposed.append(int(np.argmax(step.logits[-1])))
        return proposed


def _check_dense(directory: Path, layers: int) -> None:
    """Refuse what Llama's arithmetic can't stand for: experts, partial rotary positions, norms of queries and keys."""
    fields = read_json(directory / "config.json")
    dense = fields.get("first_k_dense_replace", 0) > layers
    plain = fields.get("partial_rotary_factor", 0.5) == 1.0 and not fields.get("use_qk_norm", False)
    if not (dense and plain):
        raise ModelFilesError(
            f"{directory / 'config.json'}: only {ARCHITECTURE} models with dense layers (first_k_dense_replace above"
            f" {layers}), partial_rotary_factor 1.0 and without use_qk_norm are known here"
        )

"""Llama-architecture models: RMSNorm, rotary positions, grouped-query attention, SwiGLU, in float32."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from testbed.runtime.inference.arithmetic import Array, linear, root_mean_square_norm
from testbed.runtime.inference.cache import KeyValueCache
from testbed.runtime.inference.errors import ModelFilesError, SequenceTooLongError
from testbed.runtime.inference.layer import Attention, FeedForward, LayerShape, Weights
from testbed.runtime.inference.safetensors import Tensor, read_directory

ARCHITECTURE = "LlamaForCausalLM"


@dataclass(frozen=True, kw_only=True)
class LlamaConfig:
    """The part of a Hugging Face config.json that decides the arithmetic; widths in elements, lengths in tokens."""

    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    vocab_size: int
    max_position_embeddings: int
    rms_norm_eps: float
    rope_theta: float
    tie_word_embeddings: bool
    bos_token_id: int
    eos_token_id: int

    @classmethod
    def read(cls, directory: Path, *, architecture: str = ARCHITECTURE) -> "LlamaConfig":
        """Read config.json of a model directory.

        Raises:
            ModelFilesError: the file is missing, lacks a field, or is of another architecture.
        """
        file = directory / "config.json"
        fields = read_json(file)
        if fields.get("architectures") != [architecture]:
            raise ModelFilesError(f"{file}: architectures is {fields.get('architectures')}, not [{architecture!r}]")
        if fields.get("rope_scaling"):
            raise ModelFilesError(f"{file}: rope_scaling is set; only plain rotary positions are known here")
        return cls.from_fields(fields, file)

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], file: Path) -> "LlamaConfig":
        """Take the fields of a parsed config.json; `file` is named in errors."""
        try:
            heads: int = fields["num_attention_heads"]
            return cls(
                hidden_size=fields["hidden_size"],
                intermediate_size=fields["intermediate_size"],
                num_hidden_layers=fields["num_hidden_layers"],
                num_attention_heads=heads,
                num_key_value_heads=fields.get("num_key_value_heads", heads),
                head_dim=fields.get("head_dim") or fields["hidden_size"] // heads,
                vocab_size=fields["vocab_size"],
                max_position_embeddings=fields["max_position_embeddings"],
                rms_norm_eps=fields["rms_norm_eps"],
                rope_theta=fields.get("rope_theta", 10000.0),
                tie_word_embeddings=fields.get("tie_word_embeddings", False),
                bos_token_id=fields["bos_token_id"],
                eos_token_id=fields["eos_token_id"],
            )
        except KeyError as error:
            raise ModelFilesError(f"{file}: lacks the field {error}") from error

    @property
    def layer_shape(self) -> LayerShape:
        """The shape that every layer of the model shares."""
        return LayerShape(
            heads=self.num_attention_heads,
            key_value_heads=self.num_key_value_heads,
            head_dim=self.head_dim,
            rope_theta=self.rope_theta,
        )


@dataclass(frozen=True)
class ForwardPass:
    """What a pass gives per new position.

    Attributes:
        logits: [n, vocabulary], float32.
        features: [n, captured layers * hidden], empty when nothing was captured.
    """

    logits: Array
    features: Array


@dataclass(frozen=True)
class _Layer:
    input_norm: Array
    attention: Attention
    post_attention_norm: Array
    feed_forward: FeedForward


class LlamaModel:
    """A loaded model. It is never changed after loading, so threads may share it; each sequence has its own cache."""

    def __init__(self, config: LlamaConfig, tensors: Mapping[str, Tensor]) -> None:
        """Take weights under their Hugging Face names.

        Raises:
            ModelFilesError: a tensor is missing or has another shape than the configuration says.
        """
        weights = Weights(tensors)
        self.config = config
        self._embedding = weights.matrix("model.embed_tokens.weight", config.vocab_size, config.hidden_size)
        self._layers = [_layer(config, weights, number) for number in range(config.num_hidden_layers)]
        self._norm = weights.vector("model.norm.weight", config.hidden_size)
        head = "model.embed_tokens.weight" if config.tie_word_embeddings else "lm_head.weight"
        self._head = weights.linear(head, config.hidden_size, config.vocab_size)

    @classmethod
    def load(cls, directory: Path) -> "LlamaModel":
        """Load config.json and the safetensors weights of a Hugging Face style directory.

        Raises:
            ModelFilesError: a file is missing, damaged, or of an architecture that is not Llama.
        """
        return cls(LlamaConfig.read(directory), read_directory(directory))

    def cache(self) -> KeyValueCache:
        """Return an empty cache for one sequence."""
        return KeyValueCache(self.config.num_hidden_layers)

    def embed(self, tokens: Sequence[int]) -> Array:
        """Return the token embeddings [n, hidden]."""
        rows: Array = self._embedding[np.asarray(tokens, dtype=np.int64)]
        return rows

    def score(self, hidden: Array) -> Array:
        """Return the logits [n, vocabulary] of hidden states [n, hidden] after the final norm."""
        return linear(hidden, self._head)

    @property
    def final_state(self) -> int:
        """The number under which `forward` captures the hidden state after the final norm."""
        return self.config.num_hidden_layers + 1

    def forward(self, tokens: Sequence[int], cache: KeyValueCache, *, capture: tuple[int, ...] = ()) -> ForwardPass:
        """Run new tokens after those in the cache, and add them to it.

        Args:
            tokens: the n new tokens, at least one.
            cache: the sequence so far.
            capture: which hidden states to return: k is the one that enters layer k, the number of layers is the
                last layer's output, and one more is that after the final norm.

        Raises:
            SequenceTooLongError: the sequence would outgrow max_position_embeddings.
        """
        self._check_length(cache.length + len(tokens))
        hidden = self.embed(tokens)
        states = [hidden]
        for number, layer in enumerate(self._layers):
            hidden = self._run(layer, hidden, cache, number)
            states.append(hidden)
        cache.advance(len(tokens))
        states.append(root_mean_square_norm(hidden, self._norm, self.config.rms_norm_eps))
        logits = self.score(states[-1])
        features = np.concatenate([states[number] for number in capture] or [hidden[:, :0]], axis=-1)
        return ForwardPass(logits, features)

    def _run(self, layer: _Layer, hidden: Array, cache: KeyValueCache, number: int) -> Array:
        epsilon = self.config.rms_norm_eps
        normed = root_mean_square_norm(hidden, layer.input_norm, epsilon)
        hidden = hidden + layer.attention.run(normed, cache, number)
        normed = root_mean_square_norm(hidden, layer.post_attention_norm, epsilon)
        return hidden + layer.feed_forward.run(normed)

    def _check_length(self, length: int) -> None:
        limit = self.config.max_position_embeddings
        if length > limit:
            raise SequenceTooLongError(f"the sequence needs {length} tokens; the model's limit is {limit}")


def read_json(file: Path) -> dict[str, Any]:
    """Read a JSON object.

    Raises:
        ModelFilesError: the file is missing or is no JSON object.
    """
    try:
        fields = json.loads(file.read_text())
    except OSError as error:
        raise ModelFilesError(f"{file}: can't be read ({error.strerror}); is the model complete?") from error
    except ValueError as error:
        raise ModelFilesError(f"{file}: is not JSON: {error}") from error
    if not isinstance(fields, dict):
        raise ModelFilesError(f"{file}: is not a JSON object")
    return fields


def _layer(config: LlamaConfig, weights: Weights, number: int) -> _Layer:
    prefix = f"model.layers.{number}."
    width = config.hidden_size
    return _Layer(
        input_norm=weights.vector(prefix + "input_layernorm.weight", width),
        attention=Attention.take(weights, prefix + "self_attn.", config.layer_shape, widths=(width, width)),
        post_attention_norm=weights.vector(prefix + "post_attention_layernorm.weight", width),
        feed_forward=FeedForward.take(weights, prefix + "mlp.", widths=(width, config.intermediate_size)),
    )

"""The two halves of a Llama layer, shared by whole models and by draft heads."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from testbed.runtime.inference.arithmetic import Array, attend, gated_unit, linear, rotate
from testbed.runtime.inference.cache import KeyValueCache
from testbed.runtime.inference.errors import ModelFilesError
from testbed.runtime.inference.safetensors import Tensor


@dataclass(frozen=True)
class LayerShape:
    """Heads of a layer and the base of its rotary positions."""

    heads: int
    key_value_heads: int
    head_dim: int
    rope_theta: float


class Weights:
    """Tensors by name, handed out only in the shape that the caller expects."""

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        """Wrap the tensors of a model."""
        self._tensors = tensors

    def matrix(self, name: str, rows: int, columns: int) -> Array:
        """Return a tensor [rows, columns] as float32.

        Raises:
            ModelFilesError: it is missing or has another shape.
        """
        return self._shaped(name, (rows, columns))

    def vector(self, name: str, width: int) -> Array:
        """Return a tensor [width] as float32; raises as `matrix` does."""
        return self._shaped(name, (width,))

    def linear(self, name: str, inputs: int, outputs: int) -> Array:
        """Return a stored [outputs, inputs] weight as [inputs, outputs], contiguous; raises as `matrix` does."""
        return np.ascontiguousarray(self.matrix(name, outputs, inputs).T)

    def _shaped(self, name: str, shape: tuple[int, ...]) -> Array:
        tensor = self._tensors.get(name)
        if tensor is None:
            raise ModelFilesError(f"tensor {name!r} is missing from the weights")
        if tensor.shape != shape:
            raise ModelFilesError(f"tensor {name!r} has shape {list(tensor.shape)}; config.json says {list(shape)}")
        return np.ascontiguousarray(tensor, dtype=np.float32)


@dataclass(frozen=True)
class Attention:
    """Grouped-query attention; its input may be wider than its output, as in EAGLE-3 heads."""

    shape: LayerShape
    query: Array
    key: Array
    value: Array
    output: Array

    @classmethod
    def take(cls, weights: Weights, prefix: str, shape: LayerShape, *, widths: tuple[int, int]) -> "Attention":
        """Take the projections under `prefix`; `widths` are of input and output."""
        inputs, outputs = widths
        inner, shared = shape.heads * shape.head_dim, shape.key_value_heads * shape.head_dim
        return cls(
            shape=shape,
            query=weights.linear(prefix + "q_proj.weight", inputs, inner),
            key=weights.linear(prefix + "k_proj.weight", inputs, shared),
            value=weights.linear(prefix + "v_proj.weight", inputs, shared),
            output=weights.linear(prefix + "o_proj.weight", inner, outputs),
        )

    def run(self, rows: Array, cache: KeyValueCache, layer: int) -> Array:
        """Return attention [n, outputs] of new rows [n, inputs], which follow the cached positions."""
        shape = self.shape
        positions = np.arange(cache.length, cache.length + len(rows))
        queries = linear(rows, self.query).reshape(len(rows), shape.heads, shape.head_dim)
        keys = linear(rows, self.key).reshape(len(rows), shape.key_value_heads, shape.head_dim)
        values = linear(rows, self.value).reshape(keys.shape)
        all_keys, all_values = cache.extend(layer, rotate(keys, positions, shape.rope_theta), values)
        return linear(attend(rotate(queries, positions, shape.rope_theta), all_keys, all_values), self.output)


@dataclass(frozen=True)
class FeedForward:
    """The SwiGLU feed-forward block."""

    gate: Array
    up: Array
    down: Array

    @classmethod
    def take(cls, weights: Weights, prefix: str, *, widths: tuple[int, int]) -> "FeedForward":
        """Take the projections under `prefix`; `widths` are of the hidden state and the inner layer."""
        hidden, inner = widths
        return cls(
            gate=weights.linear(prefix + "gate_proj.weight", hidden, inner),
            up=weights.linear(prefix + "up_proj.weight", hidden, inner),
            down=weights.linear(prefix + "down_proj.weight", inner, hidden),
        )

    def run(self, rows: Array) -> Array:
        """Return the block's output [n, hidden]."""
        return linear(gated_unit(linear(rows, self.gate), linear(rows, self.up)), self.down)

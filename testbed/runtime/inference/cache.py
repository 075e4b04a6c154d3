"""Keys and values of a sequence, kept so that each position is computed once."""

import numpy as np

from testbed.runtime.inference.arithmetic import Array


class KeyValueCache:
    """Keys and values per layer, each [length, key_value_heads, head_dim]; belongs to one sequence and one model."""

    def __init__(self, layers: int) -> None:
        """Make an empty cache for a model of so many layers."""
        self.length = 0
        self._keys: list[Array | None] = [None] * layers
        self._values: list[Array | None] = [None] * layers

    def extend(self, layer: int, keys: Array, values: Array) -> tuple[Array, Array]:
        """Add one layer's keys and values of new positions, and return all of them."""
        self._keys[layer] = all_keys = _append(self._keys[layer], self.length, keys)
        self._values[layer] = all_values = _append(self._values[layer], self.length, values)
        return all_keys, all_values

    def advance(self, count: int) -> None:
        """Count positions as cached, once every layer has added them."""
        self.length += count

    def truncate(self, length: int) -> None:
        """Forget the positions from `length` on, as after rejected draft tokens; a larger length changes nothing."""
        self.length = min(self.length, length)


def _append(known: Array | None, length: int, new: Array) -> Array:
    return new if known is None else np.concatenate((known[:length], new))

"""The arithmetic of a Llama layer, one row per position.

Every function computes each row with the same shapes and the same order of additions, however many rows come
in one call. So a position's values have the same bits in a prefill, in a single step and in a verification pass,
and a draft can't change an answer even where two tokens score almost alike.
"""

import functools
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float32]

_LEAST, _MOST = np.float32(-80), np.float32(80)


def linear(rows: Array, weight: Array) -> Array:
    """Return rows [n, in] times weight [in, out] as [n, out]."""
    product: Array = np.matmul(rows[:, np.newaxis, :], weight)[:, 0, :]
    return product


def root_mean_square_norm(rows: Array, weight: Array, epsilon: float) -> Array:
    """Return RMSNorm of rows [n, width] with weight [width]."""
    # The ufuncs themselves: on rows this short, numpy's methods around them take longer than the arithmetic.
    total: Array = np.add.reduce(np.square(rows), axis=-1, keepdims=True, dtype=np.float32)
    mean = total / np.float32(rows.shape[-1])
    root: Array = np.sqrt(mean + np.float32(epsilon), dtype=np.float32)
    normed: Array = rows / root * weight
    return normed


def sigmoid_unit(rows: Array) -> Array:
    """Return SiLU of rows [n, width]."""
    # Beyond 80 the exponential only loses precision that the float32 quotient doesn't have.
    exponential: Array = np.exp(-np.minimum(np.maximum(rows, _LEAST), _MOST), dtype=np.float32)
    unit: Array = rows / (np.float32(1) + exponential)
    return unit


def gated_unit(gate: Array, up: Array) -> Array:
    """Return SwiGLU of gate [n, width] and up [n, width]."""
    unit: Array = sigmoid_unit(gate) * up
    return unit


def rotate(heads: Array, positions: NDArray[np.int64], base: float) -> Array:
    """Return heads [n, heads, head_dim] with rotary position embedding at positions [n], in the half-split order."""
    half = heads.shape[-1] // 2
    cosines, sines = _turns(half, base, int(np.maximum.reduce(positions)).bit_length())
    cosine, sine = cosines[positions], sines[positions]
    first, second = heads[..., :half], heads[..., half:]
    rotated: Array = np.concatenate((first * cosine - second * sine, second * cosine + first * sine), axis=-1)
    return rotated


@functools.lru_cache(maxsize=64)
def _turns(half: int, base: float, bits: int) -> tuple[Array, Array]:
    """Return the cosines and the sines [2 ** bits, 1, half] of all positions that so many bits can count."""
    frequencies = base ** (-np.arange(half, dtype=np.float64) / half)
    angles = np.arange(2**bits)[:, np.newaxis, np.newaxis] * frequencies
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def attend(queries: Array, keys: Array, values: Array) -> Array:
    """Return causal attention of the newest rows over all.

    Args:
        queries: [n, heads, head_dim], the last n positions.
        keys: [length, key_value_heads, head_dim], all positions, the newest n included.
        values: the same shape as keys.

    Returns:
        [n, heads * head_dim]
    """
    count, heads, width = queries.shape
    groups = keys.shape[1]
    grouped = queries.reshape(count, groups, heads // groups, width)
    first = len(keys) - count
    # Row by row: a common masked matrix would give a row other shapes, and so other bits, than it has alone.
    rows = [_attend_row(grouped[row], keys[: first + row + 1], values[: first + row + 1]) for row in range(count)]
    return rows[0][np.newaxis] if count == 1 else np.stack(rows)


def _attend_row(query: Array, keys: Array, values: Array) -> Array:
    """Return attention of query [groups, per_group, head_dim] over keys and values [length, groups, head_dim]."""
    by_group = np.ascontiguousarray(keys.transpose(1, 2, 0))
    scores: Array = np.matmul(query, by_group) * np.float32(query.shape[-1] ** -0.5)
    weights = np.exp(scores - np.maximum.reduce(scores, axis=-1, keepdims=True))
    weights /= np.add.reduce(weights, axis=-1, keepdims=True)
    mixed: Array = np.matmul(weights, np.ascontiguousarray(values.transpose(1, 0, 2)))
    return mixed.reshape(-1)

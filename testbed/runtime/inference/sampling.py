"""How a next token is chosen from logits."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from testbed.runtime.inference.arithmetic import Array

Sampler: TypeAlias = Callable[[Array], int]


def greedy(logits: Array) -> int:
    """Return the token that scores highest of logits [vocabulary]; of equals, the lowest id."""
    return int(np.argmax(logits))


class TemperatureSampler:
    """Draws tokens by chance; the same seed gives the same tokens."""

    def __init__(self, temperature: float, seed: int) -> None:
        """Take a temperature above 0 and a seed.

        Raises:
            ValueError: the temperature is not above 0.
        """
        if temperature <= 0:
            raise ValueError(f"temperature is {temperature}; it must be above 0 (use greedy for 0)")
        self._temperature = temperature
        self._random = np.random.default_rng(seed)

    def __call__(self, logits: Array) -> int:
        """Return a token drawn from logits [vocabulary]."""
        scaled = logits.astype(np.float64) / self._temperature
        weights = np.exp(scaled - scaled.max())
        return int(self._random.choice(len(weights), p=weights / weights.sum()))

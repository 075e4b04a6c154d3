"""Lookahead decoding: the target guesses n-grams in a window ahead of the text, and verifies those that fit."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from testbed.runtime.inference.arithmetic import Array
from testbed.runtime.inference.errors import InferenceError
from testbed.runtime.inference.llama import LlamaModel
from testbed.runtime.inference.sampling import greedy
from testbed.runtime.inference.tree import DraftTree


class LookaheadConfigError(InferenceError):
    """Window, n-gram and verification set that don't go together."""


@dataclass(frozen=True)
class LookaheadConfig:
    """The three sizes, all in tokens or n-grams.

    Attributes:
        window_size: columns of the window.
        ngram_size: tokens of an n-gram, the one that it is found by included.
        verification_set_size: n-grams that are verified at a time.

    Raises:
        LookaheadConfigError: the sizes don't go together.
    """

    window_size: int
    ngram_size: int
    verification_set_size: int

    def __post_init__(self) -> None:
        for holds, text in (
            (self.ngram_size >= 1, "ngramSize requires >=1"),
            (self.window_size >= 1, "windowSize requires >=1"),
            (self.ngram_size > 1 or self.window_size == 1, "ngramSize=1 requires windowSize=1"),
            (self.ngram_size > 1 or self.verification_set_size == 0, "ngramSize=1 requires verificationSetSize=0"),
            (self.verification_set_size >= 0, "verificationSetSize requires >=0"),
        ):
            if not holds:
                raise LookaheadConfigError(text)

    @property
    def max_draft_tokens(self) -> int:
        """The draft length that an engine must be built with."""
        first = 0 if self.ngram_size == 1 else self.ngram_size - 2
        return first + (self.window_size - 1 + self.verification_set_size) * (self.ngram_size - 1)

    def within(self, other: "LookaheadConfig") -> bool:
        """Whether no size is larger than the other's."""
        return (
            self.window_size <= other.window_size
            and self.ngram_size <= other.ngram_size
            and self.verification_set_size <= other.verification_set_size
        )


class NgramPool:
    """N-grams by their first token, of each the latest few."""

    def __init__(self, per_token: int) -> None:
        """Keep so many n-grams per first token."""
        self._per_token = per_token
        self._known: dict[int, OrderedDict[tuple[int, ...], None]] = {}

    def add(self, ngram: Sequence[int]) -> None:
        """Add one n-gram, or make it the latest."""
        kept = self._known.setdefault(ngram[0], OrderedDict())
        rest = tuple(ngram[1:])
        kept[rest] = None
        kept.move_to_end(rest)
        while len(kept) > self._per_token:
            kept.popitem(last=False)

    def guesses(self, token: int) -> list[tuple[int, ...]]:
        """Return what may follow the token, the latest first."""
        return list(reversed(self._known.get(token, OrderedDict())))


class LookaheadDrafter:
    """Drafts n-grams from the target itself; needs no second model."""

    def __init__(self, config: LookaheadConfig) -> None:
        """Take the three sizes."""
        self.config = config
        self.max_path_length = config.ngram_size - 1

    def begin(self, target: LlamaModel) -> "_LookaheadSequence":
        """Begin a new sequence."""
        return _LookaheadSequence(self.config, target)


class _LookaheadSequence:
    """One sequence's window: rows of guesses, each row one position further on than the one before."""

    def __init__(self, config: LookaheadConfig, target: LlamaModel) -> None:
        self._config = config
        self._target = target
        # An engine runs the window in the verification's own pass; here it has a cache to itself.
        self._cache = target.cache()
        self._pool = NgramPool(config.verification_set_size)
        self._rows: list[list[int]] = []
        self._pooled = 0

    def propose(self, tokens: Sequence[int], features: Array, depth: int) -> DraftTree:
        del features
        if self._config.ngram_size == 1:
            return DraftTree((), ())
        self._pool_text(tokens)
        guesses = self._pool.guesses(tokens[-1])
        self._move_window(tokens)
        return DraftTree.from_paths(guess[:depth] for guess in guesses)

    def _pool_text(self, tokens: Sequence[int]) -> None:
        size = self._config.ngram_size
        for first in range(max(0, self._pooled - size + 1), len(tokens) - size + 1):
            self._pool.add(tokens[first : first + size])
        self._pooled = len(tokens)

    def _move_window(self, tokens: Sequence[int]) -> None:
        """Guess one more row from those above it, keep its n-grams, and drop the first row."""
        width, levels = self._config.window_size, self._config.ngram_size - 1
        room = self._target.config.max_position_embeddings - len(tokens)
        if room < width + levels:
            return
        if not self._rows:
            # There are no guesses yet: the window begins with tokens of the prompt.
            self._rows = [[tokens[(row + column) % len(tokens)] for column in range(width)] for row in range(levels)]
        self._target.forward(tokens[self._cache.length :], self._cache)
        known = self._cache.length
        logits = [self._target.forward(self._rows[0], self._cache).logits]
        new = [greedy(row) for row in logits[0]]
        # From the last column to the first, so that the first row's tokens that a column follows are still cached.
        for column in range(width - 1, -1, -1):
            self._cache.truncate(known + column + 1)
            below = [row[column] for row in self._rows[1:]]
            if below:
                new[column] = greedy(self._target.forward(below, self._cache).logits[-1])
            self._pool.add([*(row[column] for row in self._rows), new[column]])
        self._cache.truncate(known)
        self._rows = [*self._rows[1:], new]

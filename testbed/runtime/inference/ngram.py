"""Prompt lookup: what followed the same tokens before is proposed again; no draft model."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from testbed.runtime.inference.arithmetic import Array
from testbed.runtime.inference.drafters import DraftSequence
from testbed.runtime.inference.llama import LlamaModel


@dataclass(frozen=True, kw_only=True)
class PoolRules:
    """How a pool of n-grams is filled and asked, in the words of TensorRT-LLM's LLM API.

    Attributes:
        max_matching_ngram_size: the longest pattern that is looked up.
        is_keep_all: keep every continuation of a pattern; else one, which a longer one replaces.
        is_use_oldest: propose the continuation that was seen first; else the last.
        is_public_pool: all sequences share one pool; else each has its own.
    """

    max_matching_ngram_size: int = 2
    is_keep_all: bool = True
    is_use_oldest: bool = True
    is_public_pool: bool = True


@dataclass
class _Pool:
    """Continuations by pattern, in the order in which they were seen."""

    rules: PoolRules
    length: int
    continuations: dict[tuple[int, ...], list[tuple[int, ...]]] = field(default_factory=dict)

    def learn(self, tokens: Sequence[int], size: int) -> None:
        """Take in every pattern of this size and what follows it."""
        for start in range(len(tokens) - size):
            pattern = tuple(tokens[start : start + size])
            self._add(pattern, tuple(tokens[start + size : start + size + self.length]))

    def _add(self, pattern: tuple[int, ...], continuation: tuple[int, ...]) -> None:
        known = self.continuations.get(pattern)
        if known is None or (not self.rules.is_keep_all and len(continuation) > len(known[0])):
            self.continuations[pattern] = [continuation]
        elif self.rules.is_keep_all and continuation not in known:
            # A continuation that could only be short, at the sequence's end then, gives way to a longer one.
            kept = [each for each in known if len(each) >= len(continuation)]
            self.continuations[pattern] = [*kept, continuation]

    def find(self, pattern: tuple[int, ...]) -> tuple[int, ...] | None:
        known = self.continuations.get(pattern)
        return known[0 if self.rules.is_use_oldest else -1] if known else None


class NGramPoolDrafter:
    """Drafts from a pool of n-grams of all that was read and written, as the LLM API's NGram does."""

    captured_layers: tuple[int, ...] = ()

    def __init__(self, max_draft_tokens: int, rules: PoolRules) -> None:
        """Take how many tokens are proposed at a time, and the pool's rules.

        Raises:
            ValueError: one of the lengths is below 1.
        """
        self.max_draft_tokens = _positive("max_draft_tokens", max_draft_tokens)
        _positive("max_matching_ngram_size", rules.max_matching_ngram_size)
        self._rules = rules
        self._public = _Pool(rules, max_draft_tokens)

    def begin(self, target: LlamaModel) -> DraftSequence:
        """Begin a new sequence; every target will do."""
        del target
        pool = self._public if self._rules.is_public_pool else _Pool(self._rules, self.max_draft_tokens)
        return _PoolSequence(pool)


class _PoolSequence:
    def __init__(self, pool: _Pool) -> None:
        self._pool = pool
        self._from = 0

    def propose(self, tokens: Sequence[int], features: Array, count: int) -> list[int]:
        del features
        longest = self._pool.rules.max_matching_ngram_size
        sizes = range(min(longest, len(tokens) - 1), 0, -1)
        for size in sizes:
            self._pool.learn(tokens[self._from :], size)
        # Continuations that the end of the sequence cut short are learned again when there is more.
        self._from = max(0, len(tokens) - (self._pool.length + longest - 1))
        found = (self._pool.find(tuple(tokens[-size:])) for size in sizes)
        return list(next((each for each in found if each), ()))[:count]


class PromptLookupDrafter:
    """Drafts what followed the longest earlier occurrence of the sequence's own end, as vLLM's ngram does."""

    captured_layers: tuple[int, ...] = ()

    def __init__(self, max_draft_tokens: int, *, shortest: int, longest: int) -> None:
        """Take how many tokens are proposed at a time, and the shortest and longest end that is looked for.

        Raises:
            ValueError: a length is below 1, or the shortest is above the longest.
        """
        self.max_draft_tokens = _positive("max_draft_tokens", max_draft_tokens)
        if not 1 <= shortest <= longest:
            raise ValueError(f"shortest is {shortest} and longest {longest}; both at least 1, the first not above")
        self._shortest, self._longest = shortest, longest

    def begin(self, target: LlamaModel) -> DraftSequence:
        """Begin a new sequence; every target will do."""
        del target
        return self

    def propose(self, tokens: Sequence[int], features: Array, count: int) -> list[int]:
        """Guess the next tokens; none where the end was never seen before."""
        del features
        known = list(tokens)
        for size in range(min(self._longest, len(known) - 1), self._shortest - 1, -1):
            end = known[-size:]
            for start in range(len(known) - size):
                if known[start : start + size] == end:
                    return known[start + size : start + size + count]
        return []


def _positive(name: str, value: int) -> int:
    if value < 1:
        raise ValueError(f"{name} is {value}; it must be at least 1")
    return value

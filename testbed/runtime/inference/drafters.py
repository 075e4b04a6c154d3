"""What proposes tokens for a target to verify."""

from collections.abc import Sequence
from typing import Protocol

from testbed.runtime.inference.arithmetic import Array
from testbed.runtime.inference.eagle3 import Eagle3Head
from testbed.runtime.inference.errors import PairMismatchError
from testbed.runtime.inference.llama import LlamaConfig, LlamaModel
from testbed.runtime.inference.sampling import greedy


class DraftSequence(Protocol):
    """The draft's side of one sequence."""

    def propose(self, tokens: Sequence[int], features: Array, count: int) -> list[int]:
        """Guess the next tokens.

        Args:
            tokens: all tokens so far; the last one was chosen but has not yet run through the target.
            features: the target's hidden states of all tokens but the last, [len(tokens) - 1, captured * hidden].
            count: how many guesses are wanted, at least one.

        Returns:
            At most `count` tokens, in the target's ids.
        """


class Drafter(Protocol):
    """A draft that serves any number of sequences."""

    @property
    def captured_layers(self) -> tuple[int, ...]:
        """Which hidden states of the target it needs."""

    @property
    def max_draft_tokens(self) -> int:
        """How many tokens it proposes at a time, at most."""

    def begin(self, target: LlamaModel) -> DraftSequence:
        """Begin a new sequence of this target.

        Raises:
            PairMismatchError: it can't draft for this target.
        """


class DraftModelDrafter:
    """A smaller model of the same vocabulary that writes ahead greedily."""

    captured_layers: tuple[int, ...] = ()

    def __init__(self, model: LlamaModel, max_draft_tokens: int) -> None:
        """Take the draft model and how many tokens it proposes at a time."""
        self.model = model
        self.max_draft_tokens = _positive(max_draft_tokens)

    def begin(self, target: LlamaModel) -> DraftSequence:
        """Begin a new sequence; raises PairMismatchError when the vocabularies' sizes differ."""
        check_vocabularies(self.model.config, target.config)
        return _ModelSequence(self.model)


class Eagle3Drafter:
    """An EAGLE-3 head that proposes a chain of tokens."""

    def __init__(self, head: Eagle3Head, max_draft_tokens: int) -> None:
        """Take the head and how many tokens it proposes at a time."""
        self.head = head
        self.captured_layers = head.captured_layers
        self.max_draft_tokens = _positive(max_draft_tokens)

    def begin(self, target: LlamaModel) -> DraftSequence:
        """Begin a new sequence; raises PairMismatchError when the head was loaded for another target."""
        if target is not self.head.target:
            raise PairMismatchError("the head was loaded for another target; load it with this one")
        return _HeadSequence(self.head)


def check_vocabularies(draft: LlamaConfig, target: LlamaConfig) -> None:
    """Check that a draft model's token ids can mean the target's.

    Raises:
        PairMismatchError: the vocabularies' sizes differ.
    """
    if draft.vocab_size != target.vocab_size:
        raise PairMismatchError(
            f"the draft's vocab_size is {draft.vocab_size}, the target's {target.vocab_size};"
            " use a draft with the target's tokenizer"
        )


class _ModelSequence:
    def __init__(self, model: LlamaModel) -> None:
        self._model = model
        self._cache = model.cache()
        self._seen: list[int] = []

    def propose(self, tokens: Sequence[int], features: Array, count: int) -> list[int]:
        del features
        room = self._model.config.max_position_embeddings - len(tokens)
        self._forget_from(_common_length(self._seen, tokens[:-1]))
        pending, proposed = list(tokens[self._cache.length :]), list[int]()
        while len(proposed) < min(count, room):
            logits = self._model.forward(pending, self._cache).logits
            self._seen += pending
            pending = [greedy(logits[-1])]
            proposed += pending
        return proposed

    def _forget_from(self, length: int) -> None:
        self._cache.truncate(length)
        del self._seen[length:]


class _HeadSequence:
    def __init__(self, head: Eagle3Head) -> None:
        self._head = head
        self._cache = head.cache()
        self._verified = 0

    def propose(self, tokens: Sequence[int], features: Array, count: int) -> list[int]:
        # What earlier proposals left in the cache came from the head's own hidden states, not from the target's.
        self._cache.truncate(self._verified)
        fused = self._head.fuse(features[self._verified :])
        step = self._head.forward(fused, tokens[self._verified + 1 :], self._cache)
        self._verified = self._cache.length
        proposed = [self._head.best(step.logits[-1])]
        while len(proposed) < count:
            step = self._head.forward(step.hidden[-1:], proposed[-1:], self._cache)
            proposed.append(self._head.best(step.logits[-1]))
        return proposed


def _common_length(seen: Sequence[int], tokens: Sequence[int]) -> int:
    for position, (left, right) in enumerate(zip(seen, tokens, strict=False)):
        if left != right:
            return position
    return min(len(seen), len(tokens))


def _positive(max_draft_tokens: int) -> int:
    if max_draft_tokens < 1:
        raise ValueError(f"max_draft_tokens is {max_draft_tokens}; it must be at least 1")
    return max_draft_tokens

"""Generation with draft trees: the target walks down the tree as far as it would have chosen the same tokens."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from testbed.runtime.inference.arithmetic import Array
from testbed.runtime.inference.errors import SequenceTooLongError
from testbed.runtime.inference.llama import LlamaModel
from testbed.runtime.inference.sampling import greedy
from testbed.runtime.inference.tree import ROOT, DraftTree


class TreeSequence(Protocol):
    """The drafting side of one sequence."""

    def propose(self, tokens: Sequence[int], features: Array, depth: int) -> DraftTree:
        """Guess the next tokens.

        Args:
            tokens: all tokens so far; the last one was chosen but has not yet run through the target.
            features: the target's hidden states after its final norm, of all tokens but the last,
                [len(tokens) - 1, hidden].
            depth: how many tokens a path may have, at least one.
        """


class TreeDrafter(Protocol):
    """Something that drafts trees, for any number of sequences."""

    @property
    def max_path_length(self) -> int:
        """How many tokens a path has at most."""

    def begin(self, target: LlamaModel) -> TreeSequence:
        """Begin a new sequence of this target.

        Raises:
            PairMismatchError: it can't draft for this target.
        """


@dataclass(frozen=True, kw_only=True)
class TreeGeneration:
    """A finished answer.

    Attributes:
        tokens: the new tokens; the end mark, if met, is not among them.
        guessed: nodes of all trees.
        drafted: what could have been accepted of them: per tree the length of a path, as engines count.
        accepted: tokens that were kept because a path guessed them, a guessed end mark included.
        target_passes: verifications, the prompt's pass included.
        stopped: whether the end mark was met, rather than the limit.
    """

    tokens: tuple[int, ...]
    guessed: int
    drafted: int
    accepted: int
    target_passes: int
    stopped: bool


def generate_with_trees(
    target: LlamaModel, prompt_tokens: Sequence[int], *, max_tokens: int, end_id: int, drafter: TreeDrafter
) -> TreeGeneration:
    """Generate greedily until the end mark, `max_tokens` new tokens or the model's last position.

    The answer is the same, bit for bit, as without a drafter.

    Raises:
        SequenceTooLongError: the prompt leaves no room for a token.
        PairMismatchError: the drafter can't draft for this target.
        ValueError: the prompt is empty or `max_tokens` is below 1.
    """
    if not prompt_tokens or max_tokens < 1:
        raise ValueError("prompt_tokens must not be empty, and max_tokens at least 1")
    sequence = _Sequence(target, prompt_tokens, end_id=end_id, drafter=drafter)
    limit = min(max_tokens, sequence.room)
    while not sequence.stopped and len(sequence.answer) < limit:
        sequence.advance(limit - len(sequence.answer))
    return sequence.generation()


class _Sequence:
    def __init__(self, target: LlamaModel, prompt_tokens: Sequence[int], *, end_id: int, drafter: TreeDrafter) -> None:
        self.answer: list[int] = []
        self.stopped = False
        self._target = target
        self._tokens = list(prompt_tokens)
        self._cache = target.cache()
        self._end_id = end_id
        self._max_path_length = drafter.max_path_length
        self._draft = drafter.begin(target)
        self._features: Array | None = None
        self._guessed = self._drafted = self._accepted = self._passes = 0
        if self.room < 1:
            limit = target.config.max_position_embeddings
            raise SequenceTooLongError(f"the prompt has {len(prompt_tokens)} tokens; the model's limit is {limit}")

    @property
    def room(self) -> int:
        return self._target.config.max_position_embeddings - len(self._tokens)

    def advance(self, wanted: int) -> None:
        """Verify one tree: an engine runs it whole in one pass, here only the nodes that are reached are run.

        The logits of a node depend on its ancestors alone, so what is left out could not change the result.
        """
        tree = self._propose(wanted)
        self._passes += 1
        self._guessed += tree.size
        self._drafted += min(tree.size, self._max_path_length)
        node: int | None = ROOT
        while node is not None:
            chosen = self._run_pending()
            self._tokens.append(chosen)
            node = tree.child(node, chosen)
            self._accepted += node is not None
            if chosen == self._end_id:
                self.stopped = True
                return
            self.answer.append(chosen)

    def generation(self) -> TreeGeneration:
        return TreeGeneration(
            tokens=tuple(self.answer),
            guessed=self._guessed,
            drafted=self._drafted,
            accepted=self._accepted,
            target_passes=self._passes,
            stopped=self.stopped,
        )

    def _propose(self, wanted: int) -> DraftTree:
        # The pass itself adds one token, and heads have nothing to read before the prompt has run.
        depth = min(wanted - 1, self._max_path_length)
        if self._features is None or depth < 1:
            return DraftTree((), ())
        return self._draft.propose(self._tokens, self._features, depth).pruned(depth)

    def _run_pending(self) -> int:
        pending = self._tokens[self._cache.length :]
        result = self._target.forward(pending, self._cache, capture=(self._target.final_state,))
        known = self._features
        self._features = result.features if known is None else np.concatenate((known, result.features))
        return greedy(result.logits[-1])

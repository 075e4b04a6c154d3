"""Generation with and without a draft: the draft proposes, the target verifies in one pass."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from testbed.runtime.inference.arithmetic import Array
from testbed.runtime.inference.drafters import Drafter, DraftModelDrafter, DraftSequence, Eagle3Drafter
from testbed.runtime.inference.errors import SequenceTooLongError
from testbed.runtime.inference.llama import LlamaModel
from testbed.runtime.inference.sampling import Sampler, TemperatureSampler, greedy

__all__ = [
    "DraftModelDrafter",
    "Drafter",
    "Eagle3Drafter",
    "Generation",
    "Sampler",
    "TemperatureSampler",
    "Verification",
    "generate",
    "greedy",
    "verify",
]


@dataclass(frozen=True, kw_only=True)
class Generation:
    """A finished answer.

    Attributes:
        tokens: the new tokens; neither the prompt nor the end mark is among them.
        drafted: tokens that the draft proposed and the target judged.
        accepted: those of them that the target would have chosen itself, a proposed end mark included.
        target_passes: forward passes of the target, the prompt's included.
        stopped: whether the end mark was met, rather than the limit.
    """

    tokens: tuple[int, ...]
    drafted: int
    accepted: int
    target_passes: int
    stopped: bool

    @property
    def acceptance_rate(self) -> float | None:
        """Accepted per drafted token, or None where nothing was drafted."""
        return self.accepted / self.drafted if self.drafted else None


@dataclass(frozen=True, kw_only=True)
class Verification:
    """A target's judgement of proposed tokens.

    Attributes:
        tokens: the accepted tokens and the target's own next one; the end mark, if met, is the last.
        accepted: how many of the proposed tokens are among them.
        stopped: whether the end mark was met.
    """

    tokens: tuple[int, ...]
    accepted: int
    stopped: bool


def generate(
    target: LlamaModel,
    prompt_tokens: Sequence[int],
    *,
    max_tokens: int,
    end_id: int,
    drafter: Drafter | None = None,
    sampler: Sampler = greedy,
    on_tokens: Callable[[Sequence[int]], None] | None = None,
) -> Generation:
    """Generate until the end mark, `max_tokens` new tokens or the model's last position.

    Args:
        target: the model whose answer is wanted.
        prompt_tokens: at least one token.
        max_tokens: limit of new tokens, at least 1.
        end_id: the end mark's id.
        drafter: proposes tokens; the answer is the same, bit for bit, without it.
        sampler: chooses tokens; only greedy choice goes with a drafter.
        on_tokens: called after each target pass with the tokens that it added.

    Raises:
        SequenceTooLongError: the prompt leaves no room for a token.
        PairMismatchError: the drafter can't draft for this target.
        ValueError: an argument is out of range, or a drafter meets a sampler that is not greedy.
    """
    _check(prompt_tokens, max_tokens, greedy_only=drafter is not None, sampler=sampler)
    sequence = _Sequence(target, prompt_tokens, end_id=end_id, drafter=drafter, sampler=sampler)
    limit = min(max_tokens, sequence.room)
    while not sequence.stopped and len(sequence.answer) < limit:
        known = len(sequence.answer)
        sequence.advance(limit - known)
        if on_tokens is not None and len(sequence.answer) > known:
            on_tokens(sequence.answer[known:])
    return sequence.generation()


def verify(
    target: LlamaModel, prompt_tokens: Sequence[int], draft_tokens: Sequence[int], *, end_id: int
) -> Verification:
    """Judge proposed tokens in one pass of the target, as an engine does with draft_input_ids.

    Raises:
        SequenceTooLongError: prompt and proposal are longer than the model's last position.
        ValueError: the prompt is empty.
    """
    if not prompt_tokens:
        raise ValueError("prompt_tokens is empty; give at least the begin mark")
    logits = target.forward([*prompt_tokens, *draft_tokens], target.cache()).logits
    return _judge(logits[len(prompt_tokens) - 1 :], draft_tokens, end_id=end_id, sampler=greedy)


class _Sequence:
    """One sequence under way: what was chosen, what the target has cached, and the counts."""

    def __init__(
        self,
        target: LlamaModel,
        prompt_tokens: Sequence[int],
        *,
        end_id: int,
        drafter: Drafter | None,
        sampler: Sampler,
    ) -> None:
        self.answer: list[int] = []
        self.stopped = False
        self._target = target
        self._tokens = list(prompt_tokens)
        self._cache = target.cache()
        self._end_id = end_id
        self._sampler = sampler
        self._drafter = drafter
        self._draft: DraftSequence | None = drafter.begin(target) if drafter else None
        self._features: Array | None = None
        self._drafted = self._accepted = self._passes = 0
        if self.room < 1:
            limit = target.config.max_position_embeddings
            raise SequenceTooLongError(f"the prompt has {len(prompt_tokens)} tokens; the model's limit is {limit}")

    @property
    def room(self) -> int:
        """How many tokens may still be added; the last one added is never run."""
        return self._target.config.max_position_embeddings - len(self._tokens)

    def advance(self, wanted: int) -> None:
        """Run one target pass, over proposed tokens where there is a draft, and keep what it accepts."""
        proposed = self._propose(wanted)
        pending = self._tokens[self._cache.length :]
        capture = self._drafter.captured_layers if self._drafter else ()
        result = self._target.forward([*pending, *proposed], self._cache, capture=capture)
        self._passes += 1
        judged = _judge(result.logits[len(pending) - 1 :], proposed, end_id=self._end_id, sampler=self._sampler)
        self._drafted += len(proposed)
        self._accepted += judged.accepted
        self._keep_features(result.features[: len(pending) + judged.accepted])
        self._cache.truncate(len(self._tokens) + judged.accepted)
        self._tokens += judged.tokens
        self.answer += judged.tokens[:-1] if judged.stopped else judged.tokens
        self.stopped = judged.stopped

    def generation(self) -> Generation:
        return Generation(
            tokens=tuple(self.answer),
            drafted=self._drafted,
            accepted=self._accepted,
            target_passes=self._passes,
            stopped=self.stopped,
        )

    def _propose(self, wanted: int) -> list[int]:
        # The pass itself adds one token, and an EAGLE head has nothing to read before the prompt has run.
        if self._drafter is None or self._draft is None or self._features is None or wanted < 2:
            return []
        count = min(self._drafter.max_draft_tokens, wanted - 1)
        return self._draft.propose(self._tokens, self._features, count)

    def _keep_features(self, new: Array) -> None:
        self._features = new if self._features is None else np.concatenate((self._features, new))


def _judge(logits: Array, proposed: Sequence[int], *, end_id: int, sampler: Sampler) -> Verification:
    """Compare proposed tokens with the target's choices from logits [len(proposed) + 1, vocabulary]."""
    chosen: list[int] = []
    for row in logits:
        chosen.append(sampler(row))
        position = len(chosen) - 1
        agreed = position < len(proposed) and proposed[position] == chosen[position]
        if chosen[-1] == end_id or not agreed:
            return Verification(tokens=tuple(chosen), accepted=position + agreed, stopped=chosen[-1] == end_id)
    raise AssertionError("one more row of logits than proposed tokens always ends the loop")


def _check(prompt_tokens: Sequence[int], max_tokens: int, *, greedy_only: bool, sampler: Sampler) -> None:
    if not prompt_tokens:
        raise ValueError("prompt_tokens is empty; give at least the begin mark")
    if max_tokens < 1:
        raise ValueError(f"max_tokens is {max_tokens}; it must be at least 1")
    if greedy_only and sampler is not greedy:
        raise ValueError("a drafter goes with greedy decoding only; leave out the sampler or the drafter")

"""Speculation: the answer never changes, and the counts are true."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.hub.training.corpus import Line, read_lines
from testbed.runtime.inference.arithmetic import Array
from testbed.runtime.inference.drafters import Drafter, DraftSequence
from testbed.runtime.inference.eagle3 import Eagle3Head
from testbed.runtime.inference.errors import PairMismatchError, SequenceTooLongError
from testbed.runtime.inference.llama import LlamaModel
from testbed.runtime.inference.speculation import (
    DraftModelDrafter,
    Eagle3Drafter,
    Generation,
    TemperatureSampler,
    generate,
    verify,
)
from testbed.runtime.inference.tokenizer import TextTokenizer

END = 2
QUESTION = "What is speculative decoding?"
PROMPTS = st.lists(st.integers(0, 511), min_size=1, max_size=20)


class Scripted:
    """A drafter that proposes what it was told, over and over."""

    captured_layers: tuple[int, ...] = ()

    def __init__(self, script: Sequence[int]) -> None:
        self.max_draft_tokens = len(script)
        self._script = list(script)

    def begin(self, target: LlamaModel) -> DraftSequence:
        del target
        return self

    def propose(self, tokens: Sequence[int], features: Array, count: int) -> list[int]:
        del tokens, features
        return self._script[:count]


@pytest.fixture(scope="session")
def lines(models: Path) -> list[Line]:
    return read_lines(models.parents[1] / "training" / "corpus.txt")


@pytest.fixture(scope="session")
def prompts(tokenizer: TextTokenizer, lines: list[Line]) -> list[list[int]]:
    return [tokenizer.encode(line.prompt) for line in lines]


@pytest.fixture(scope="session")
def plain(target: LlamaModel, prompts: list[list[int]]) -> list[Generation]:
    """The target's own answers to all lines."""
    return [answer(target, prompt) for prompt in prompts]


@pytest.fixture(scope="session")
def drafters(draft: LlamaModel, head: Eagle3Head, untrained: LlamaModel) -> dict[str, Drafter]:
    return {
        "draft": DraftModelDrafter(draft, 4),
        "eagle3": Eagle3Drafter(head, 3),
        "untrained": DraftModelDrafter(untrained, 5),
    }


@pytest.fixture(scope="session", params=["draft", "eagle3", "untrained"])
def drafter(request: pytest.FixtureRequest, drafters: dict[str, Drafter]) -> Drafter:
    return drafters[request.param]


def answer(target: LlamaModel, prompt: Sequence[int], drafter: Drafter | None = None, limit: int = 64) -> Generation:
    return generate(target, prompt, max_tokens=limit, end_id=END, drafter=drafter)


def test_the_target_knows_its_lines(plain: list[Generation], tokenizer: TextTokenizer, lines: list[Line]) -> None:
    assert [tokenizer.decode(each.tokens) for each in plain] == [f" {line.answer}" for line in lines]


@pytest.mark.parametrize("kind", ["draft", "eagle3"])
def test_a_draft_changes_no_answer_and_agrees_often_but_not_always(
    plain: list[Generation], target: LlamaModel, drafters: dict[str, Drafter], prompts: list[list[int]], kind: str
) -> None:
    said = [answer(target, prompt, drafters[kind]) for prompt in prompts]
    rate = sum(each.accepted for each in said) / sum(each.drafted for each in said)
    assert ([each.tokens for each in said], 0.4 < rate < 0.95) == ([each.tokens for each in plain], True)


def test_an_untrained_draft_changes_no_answer(
    plain: list[Generation], target: LlamaModel, drafters: dict[str, Drafter], prompts: list[list[int]]
) -> None:
    said = [answer(target, prompt, drafters["untrained"]).tokens for prompt in prompts[::8]]
    assert said == [each.tokens for each in plain[::8]]


@settings(max_examples=12, deadline=None)
@given(prompt=PROMPTS, limit=st.integers(1, 24))
def test_a_draft_changes_no_answer_to_nonsense(
    target: LlamaModel, drafter: Drafter, prompt: list[int], limit: int
) -> None:
    assert answer(target, prompt, drafter, limit).tokens == answer(target, prompt, None, limit).tokens


@settings(max_examples=12, deadline=None)
@given(prompt=PROMPTS, script=st.lists(st.integers(0, 511), min_size=1, max_size=6))
def test_no_proposal_changes_the_answer_of_an_untrained_target(
    untrained: LlamaModel, prompt: list[int], script: list[int]
) -> None:
    drafted = answer(untrained, prompt, Scripted(script), 12)
    assert drafted.tokens == answer(untrained, prompt, None, 12).tokens


@settings(max_examples=12, deadline=None)
@given(prompt=PROMPTS, limit=st.integers(1, 30))
def test_each_pass_adds_what_was_accepted_and_one_more(
    target: LlamaModel, drafter: Drafter, prompt: list[int], limit: int
) -> None:
    said = answer(target, prompt, drafter, limit)
    # A proposed end mark is accepted, and then there is no token of the target's own after it.
    assert said.target_passes + said.accepted - len(said.tokens) in ((1, 2) if said.stopped else (0,))


def test_a_perfect_draft_is_accepted_whole(target: LlamaModel, tokenizer: TextTokenizer) -> None:
    said = answer(target, tokenizer.encode(QUESTION), DraftModelDrafter(target, 4))
    assert (said.drafted > 0, said.acceptance_rate) == (True, 1.0)


def test_a_draft_that_is_always_wrong_is_never_accepted(target: LlamaModel, tokenizer: TextTokenizer) -> None:
    prompt = tokenizer.encode(QUESTION)
    never = next(token for token in range(3, 512) if token not in answer(target, prompt).tokens)
    said = answer(target, prompt, Scripted([never, never]))
    assert (said.drafted > 0, said.accepted) == (True, 0)


def test_a_draft_saves_target_passes(target: LlamaModel, draft: LlamaModel, tokenizer: TextTokenizer) -> None:
    prompt = tokenizer.encode(QUESTION)
    drafted = answer(target, prompt, DraftModelDrafter(draft, 4))
    assert drafted.target_passes * 2 < answer(target, prompt).target_passes


def test_without_a_draft_there_is_no_acceptance_rate(target: LlamaModel) -> None:
    said = answer(target, [1, 50])
    assert (said.drafted, said.acceptance_rate) == (0, None)


def test_tokens_are_reported_as_they_come(target: LlamaModel, drafter: Drafter, tokenizer: TextTokenizer) -> None:
    pieces: list[int] = []
    said = generate(
        target, tokenizer.encode(QUESTION), max_tokens=48, end_id=END, drafter=drafter, on_tokens=pieces.extend
    )
    assert tuple(pieces) == said.tokens


def test_the_limit_of_new_tokens_holds(target: LlamaModel, drafter: Drafter, tokenizer: TextTokenizer) -> None:
    said = answer(target, tokenizer.encode(QUESTION), drafter, 7)
    assert (len(said.tokens), said.stopped) == (7, False)


def test_generation_ends_at_the_last_position(untrained: LlamaModel) -> None:
    said = generate(untrained, [1] * 90, max_tokens=50, end_id=-1, drafter=DraftModelDrafter(untrained, 4))
    assert len(said.tokens) == 6


def test_a_prompt_that_fills_the_model_is_refused(untrained: LlamaModel) -> None:
    with pytest.raises(SequenceTooLongError, match="the prompt has 96 tokens; the model's limit is 96"):
        answer(untrained, [1] * 96)


def test_verification_gives_the_accepted_tokens_and_the_next(target: LlamaModel, tokenizer: TextTokenizer) -> None:
    prompt = tokenizer.encode(QUESTION)
    expected = answer(target, prompt).tokens
    judged = verify(target, prompt, [expected[0], expected[1], 5], end_id=END)
    assert (judged.tokens, judged.accepted) == (expected[:3], 2)


def test_verification_without_a_proposal_gives_the_next_token(target: LlamaModel, tokenizer: TextTokenizer) -> None:
    prompt = tokenizer.encode(QUESTION)
    assert verify(target, prompt, [], end_id=END).tokens == answer(target, prompt).tokens[:1]


def test_verification_stops_at_a_proposed_end(target: LlamaModel, tokenizer: TextTokenizer) -> None:
    prompt = [*tokenizer.encode(QUESTION), *answer(target, tokenizer.encode(QUESTION)).tokens]
    judged = verify(target, prompt, [END, 7], end_id=END)
    assert (judged.tokens, judged.accepted, judged.stopped) == ((END,), 1, True)


def test_rounds_of_proposal_and_verification_give_the_whole_answer(
    target: LlamaModel, draft: LlamaModel, tokenizer: TextTokenizer
) -> None:
    prompt = tokenizer.encode(QUESTION)
    context, stopped = list(prompt), False
    while not stopped:
        proposed = generate(draft, context, max_tokens=5, end_id=END).tokens
        judged = verify(target, context, proposed, end_id=END)
        context += judged.tokens
        stopped = judged.stopped
    assert tuple(context[len(prompt) : -1]) == answer(target, prompt).tokens


def test_the_same_seed_draws_the_same_tokens(target: LlamaModel) -> None:
    drawn = [
        generate(target, [1, 50], max_tokens=12, end_id=END, sampler=TemperatureSampler(2.0, seed)).tokens
        for seed in (4, 4, 5)
    ]
    assert (drawn[0] == drawn[1], drawn[0] == drawn[2]) == (True, False)


def test_a_drafter_goes_with_greedy_decoding_only(target: LlamaModel, drafter: Drafter) -> None:
    with pytest.raises(ValueError, match="greedy decoding only"):
        generate(target, [1], max_tokens=1, end_id=END, drafter=drafter, sampler=TemperatureSampler(1.0, 0))


def test_a_draft_of_another_vocabulary_is_refused(models: Path, target: LlamaModel) -> None:
    stranger = LlamaModel.load(models / "tiny-llama-other-vocabulary")
    with pytest.raises(PairMismatchError, match="the draft's vocab_size is 384, the target's 512"):
        answer(target, [1, 50], DraftModelDrafter(stranger, 4))


def test_logits_stay_finite(untrained: LlamaModel) -> None:
    assert bool(np.isfinite(untrained.forward(list(range(90)), untrained.cache()).logits).all())

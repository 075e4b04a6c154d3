"""Generation with draft trees: the answer never changes, and the counts are true."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.hub.training.corpus import read_lines
from testbed.runtime.inference.arithmetic import Array
from testbed.runtime.inference.eagle1 import Eagle1Drafter, Eagle1Head
from testbed.runtime.inference.errors import PairMismatchError, SequenceTooLongError
from testbed.runtime.inference.llama import LlamaModel
from testbed.runtime.inference.lookahead import LookaheadConfig, LookaheadDrafter
from testbed.runtime.inference.medusa import MedusaDrafter, MedusaHeads
from testbed.runtime.inference.redrafter import RedrafterDrafter, RedrafterModel
from testbed.runtime.inference.speculation import Generation, generate
from testbed.runtime.inference.tokenizer import TextTokenizer
from testbed.runtime.inference.tree import DraftTree
from testbed.runtime.inference.tree_choices import Choices, TreeLimits, check_choices, default_choices
from testbed.runtime.inference.tree_generation import TreeDrafter, TreeGeneration, TreeSequence, generate_with_trees

END = 2
QUESTION = "What is speculative decoding?"
CHAIN: Choices = ((0,), (0, 0), (0, 0, 0))
BUSHY = check_choices(((0,), (1,), (2,), (0, 0), (0, 1), (1, 0), (0, 0, 0), (0, 1, 0)), TreeLimits(63, 4))
KINDS = ("eagle", "medusa", "lookahead", "redrafter")


class Scripted:
    """Proposes the same tree over and over."""

    def __init__(self, *paths: Sequence[int]) -> None:
        self.max_path_length = max(len(path) for path in paths)
        self._tree = DraftTree.from_paths(paths)

    def begin(self, target: LlamaModel) -> TreeSequence:
        del target
        return self

    def propose(self, tokens: Sequence[int], features: Array, depth: int) -> DraftTree:
        assert len(features) == len(tokens) - 1
        return self._tree.pruned(depth)


@pytest.fixture(scope="module")
def drafters(
    eagle1_head: Eagle1Head, medusa_heads: MedusaHeads, redrafter_model: RedrafterModel
) -> dict[str, TreeDrafter]:
    return {
        "eagle": Eagle1Drafter(eagle1_head, BUSHY),
        "medusa": MedusaDrafter(medusa_heads, BUSHY),
        "lookahead": LookaheadDrafter(LookaheadConfig(4, 3, 4)),
        "redrafter": RedrafterDrafter(redrafter_model, beams=3, draft_length=4),
    }


@pytest.fixture(scope="module")
def prompts(models: Path, tokenizer: TextTokenizer) -> list[list[int]]:
    lines = read_lines(models.parents[1] / "training" / "corpus.txt")
    return [tokenizer.encode(line.prompt) for line in lines[::12]]


@pytest.fixture(scope="module")
def plain(target: LlamaModel, prompts: list[list[int]]) -> list[Generation]:
    return [generate(target, prompt, max_tokens=48, end_id=END) for prompt in prompts]


def answer(target: LlamaModel, prompt: Sequence[int], drafter: TreeDrafter, limit: int = 48) -> TreeGeneration:
    return generate_with_trees(target, prompt, max_tokens=limit, end_id=END, drafter=drafter)


@pytest.fixture(scope="module", params=KINDS)
def said(
    target: LlamaModel, drafters: dict[str, TreeDrafter], prompts: list[list[int]], request: pytest.FixtureRequest
) -> list[TreeGeneration]:
    """The answers to all prompts with trees of one kind."""
    return [answer(target, prompt, drafters[request.param]) for prompt in prompts]


def test_a_tree_changes_no_answer_and_saves_passes(
    plain: list[Generation], said: list[TreeGeneration], prompts: list[list[int]]
) -> None:
    assert [each.tokens for each in said] == [each.tokens for each in plain]
    saved = sum(each.target_passes for each in plain) - sum(each.target_passes for each in said)
    # An accepted end mark is the last token of its pass: no other follows that would have cost one.
    assert 0 <= sum(each.accepted for each in said) - saved <= len(prompts) < saved


def test_not_all_that_is_drafted_is_accepted(said: list[TreeGeneration]) -> None:
    drafted, accepted = sum(each.drafted for each in said), sum(each.accepted for each in said)
    assert 0.15 < accepted / drafted < 0.95


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=8, deadline=None)
@given(prompt=st.lists(st.integers(0, 511), min_size=1, max_size=16), limit=st.integers(1, 20))
def test_a_tree_changes_no_answer_to_nonsense(
    target: LlamaModel, drafters: dict[str, TreeDrafter], kind: str, prompt: list[int], limit: int
) -> None:
    expected = generate(target, prompt, max_tokens=limit, end_id=END).tokens
    assert answer(target, prompt, drafters[kind], limit).tokens == expected


@pytest.mark.parametrize("kind", ["eagle", "medusa"])
def test_a_bushy_tree_needs_fewer_passes_than_a_chain(
    target: LlamaModel, eagle1_head: Eagle1Head, medusa_heads: MedusaHeads, prompts: list[list[int]], kind: str
) -> None:
    def passes(choices: Choices) -> int:
        eagle, medusa = Eagle1Drafter(eagle1_head, choices), MedusaDrafter(medusa_heads, choices)
        drafter: TreeDrafter = eagle if kind == "eagle" else medusa
        return sum(answer(target, prompt, drafter).target_passes for prompt in prompts[:6])

    assert passes(default_choices()) < passes(CHAIN)


def test_the_right_path_of_a_tree_is_taken_whole(target: LlamaModel, tokenizer: TextTokenizer) -> None:
    prompt = tokenizer.encode(QUESTION)
    first, second, third, *_ = generate(target, prompt, max_tokens=4, end_id=END).tokens
    said = answer(target, prompt, Scripted((9, 9), (second, 9), (second, third)), 4)
    # The prompt's own pass gives the first token; of the tree's two levels both are kept, and one more follows.
    assert (said.tokens[:3], said.accepted, said.guessed, said.drafted) == ((first, second, third), 2, 5, 2)


def test_a_guessed_end_mark_ends_the_answer_and_counts_as_accepted(
    target: LlamaModel, tokenizer: TextTokenizer
) -> None:
    prompt = tokenizer.encode(QUESTION)
    whole = generate(target, prompt, max_tokens=64, end_id=END).tokens
    said = answer(target, [*prompt, *whole[:-1]], Scripted((END, 7)))
    assert (said.tokens, said.stopped, said.accepted, said.target_passes) == (whole[-1:], True, 1, 2)


def test_generation_ends_at_the_last_position(untrained: LlamaModel) -> None:
    said = generate_with_trees(untrained, [1] * 90, max_tokens=50, end_id=-1, drafter=Scripted((1, 2, 3, 4)))
    assert len(said.tokens) == 6


def test_a_prompt_that_fills_the_model_is_refused(untrained: LlamaModel) -> None:
    with pytest.raises(SequenceTooLongError, match="the model's limit is 96"):
        answer(untrained, [1] * 96, Scripted((1,)))


@pytest.mark.parametrize("kind", ["eagle", "medusa", "redrafter"])
def test_heads_serve_only_the_target_they_were_loaded_for(
    models: Path, drafters: dict[str, TreeDrafter], kind: str
) -> None:
    another = LlamaModel.load(models / "tiny-llama")
    with pytest.raises(PairMismatchError, match="another target"):
        answer(another, [1], drafters[kind])

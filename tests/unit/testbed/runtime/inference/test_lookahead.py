"""Lookahead: the sizes, the pool of n-grams, and the window."""

from itertools import pairwise

import numpy as np
import pytest

from testbed.runtime.inference.llama import LlamaModel
from testbed.runtime.inference.lookahead import LookaheadConfig, LookaheadConfigError, LookaheadDrafter, NgramPool
from testbed.runtime.inference.speculation import generate
from testbed.runtime.inference.tokenizer import TextTokenizer
from testbed.runtime.inference.tree import ROOT

NOTHING = np.zeros((0, 64), dtype=np.float32)


@pytest.mark.parametrize(("sizes", "length"), [((7, 7, 7), 83), ((4, 3, 4), 15), ((2, 2, 1), 2), ((1, 1, 0), 0)])
def test_the_draft_length_follows_from_the_sizes(sizes: tuple[int, int, int], length: int) -> None:
    assert LookaheadConfig(*sizes).max_draft_tokens == length


@pytest.mark.parametrize(
    ("sizes", "refusal"),
    [
        ((0, 2, 1), "windowSize requires >=1"),
        ((1, 0, 0), "ngramSize requires >=1"),
        ((2, 1, 0), "ngramSize=1 requires windowSize=1"),
        ((1, 1, 1), "ngramSize=1 requires verificationSetSize=0"),
        ((2, 2, -1), "verificationSetSize requires >=0"),
    ],
)
def test_sizes_that_do_not_go_together_are_refused(sizes: tuple[int, int, int], refusal: str) -> None:
    with pytest.raises(LookaheadConfigError, match=refusal):
        LookaheadConfig(*sizes)


def test_the_pool_keeps_the_latest_ngrams_of_each_token() -> None:
    pool = NgramPool(2)
    for ngram in ((1, 2, 3), (1, 4, 5), (1, 2, 3), (1, 6, 7), (9, 9, 9)):
        pool.add(ngram)
    assert (pool.guesses(1), pool.guesses(5)) == ([(6, 7), (2, 3)], [])


def test_what_followed_a_token_in_the_text_is_guessed_again(target: LlamaModel) -> None:
    sequence = LookaheadDrafter(LookaheadConfig(2, 3, 3)).begin(target)
    tree = sequence.propose([1, 50, 60, 70, 50], NOTHING, 2)
    assert tree.child(tree.child(ROOT, 60) or 0, 70) is not None


def test_the_window_foresees_what_the_text_has_not_held_yet(target: LlamaModel, tokenizer: TextTokenizer) -> None:
    prompt = tokenizer.encode("What is speculative decoding?")
    words = generate(target, prompt, max_tokens=48, end_id=2).tokens
    sequence = LookaheadDrafter(LookaheadConfig(7, 3, 7)).begin(target)
    foreseen = 0
    for count in range(1, len(words)):
        text = [*prompt, *words[:count]]
        tree = sequence.propose(text, NOTHING, 2)
        new = (text[-1], words[count]) not in set(pairwise(text))
        foreseen += new and tree.child(ROOT, words[count]) is not None
    assert foreseen > 0


def test_the_smallest_sizes_turn_it_off(target: LlamaModel) -> None:
    sequence = LookaheadDrafter(LookaheadConfig(1, 1, 0)).begin(target)
    assert sequence.propose([1, 50, 1, 50], NOTHING, 3).size == 0


def test_near_the_last_position_the_window_rests(untrained: LlamaModel) -> None:
    sequence = LookaheadDrafter(LookaheadConfig(4, 3, 4)).begin(untrained)
    assert sequence.propose([5, 6, 7] * 31, NOTHING, 2).tokens == (5, 6)

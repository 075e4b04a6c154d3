"""Prompt lookup proposes what its rules say, and never changes an answer."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.runtime.inference.drafters import Drafter
from testbed.runtime.inference.llama import LlamaModel
from testbed.runtime.inference.ngram import NGramPoolDrafter, PoolRules, PromptLookupDrafter
from testbed.runtime.inference.speculation import generate
from testbed.runtime.inference.tokenizer import TextTokenizer

END = 2
FEATURES = np.zeros((0, 0), dtype=np.float32)
REPEATED = "What is the capital of France?"  # the answer says "capital of France" again


def pooled(target: LlamaModel, *sequences: list[int], length: int = 3, **rules: Any) -> list[int]:
    """What a pool proposes after the last sequence, having read the ones before."""
    drafter = NGramPoolDrafter(length, PoolRules(**rules))
    return [drafter.begin(target).propose(tokens, FEATURES, length) for tokens in sequences][-1]


def test_a_pool_proposes_what_followed_the_longest_pattern(target: LlamaModel) -> None:
    assert pooled(target, [7, 8, 9, 10, 11, 3, 8, 50, 7, 8]) == [9, 10, 11]


def test_a_pool_knows_patterns_only_up_to_its_size(target: LlamaModel) -> None:
    tokens = [8, 40, 41, 7, 8, 50, 51, 7, 8]
    assert pooled(target, tokens, max_matching_ngram_size=1) == [40, 41, 7]


@pytest.mark.parametrize(("oldest", "expected"), [(True, [9, 10]), (False, [20, 21])])
def test_a_pool_uses_the_oldest_or_the_newest_continuation(
    target: LlamaModel, *, oldest: bool, expected: list[int]
) -> None:
    tokens = [7, 8, 9, 10, 7, 8, 20, 21, 7, 8]
    assert pooled(target, tokens, length=2, is_use_oldest=oldest) == expected


def test_a_pool_that_keeps_one_continuation_has_no_newer_one(target: LlamaModel) -> None:
    tokens = [7, 8, 9, 10, 7, 8, 20, 21, 7, 8]
    assert pooled(target, tokens, length=2, is_keep_all=False, is_use_oldest=False) == [9, 10]


@pytest.mark.parametrize(("public", "expected"), [(True, [9, 10, 11]), (False, [])])
def test_only_a_public_pool_remembers_other_sequences(target: LlamaModel, *, public: bool, expected: list[int]) -> None:
    assert pooled(target, [7, 8, 9, 10, 11], [60, 7, 8], is_public_pool=public) == expected


def test_a_lookup_takes_the_longest_end_and_its_first_occurrence(target: LlamaModel) -> None:
    drafter = PromptLookupDrafter(2, shortest=1, longest=3)
    tokens = [8, 1, 7, 8, 20, 21, 7, 8, 30, 7, 8]
    assert drafter.begin(target).propose(tokens, FEATURES, 2) == [20, 21]


def test_a_lookup_ignores_ends_shorter_than_its_shortest(target: LlamaModel) -> None:
    drafter = PromptLookupDrafter(2, shortest=2, longest=3)
    assert drafter.begin(target).propose([8, 1, 30, 8], FEATURES, 2) == []


@pytest.mark.parametrize(("shortest", "longest"), [(0, 2), (3, 2)])
def test_a_lookup_of_impossible_lengths_is_refused(shortest: int, longest: int) -> None:
    with pytest.raises(ValueError, match=f"shortest is {shortest} and longest {longest}"):
        PromptLookupDrafter(2, shortest=shortest, longest=longest)


DRAFTERS: dict[str, Drafter] = {
    "pool": NGramPoolDrafter(4, PoolRules()),
    "lookup": PromptLookupDrafter(4, shortest=1, longest=5),
}


@pytest.mark.parametrize("kind", DRAFTERS)
def test_words_of_the_prompt_are_drafted_and_accepted(target: LlamaModel, tokenizer: TextTokenizer, kind: str) -> None:
    prompt = tokenizer.encode(REPEATED)
    plain = generate(target, prompt, max_tokens=24, end_id=END)
    drafted = generate(target, prompt, max_tokens=24, end_id=END, drafter=DRAFTERS[kind])
    assert (drafted.tokens, drafted.accepted > 0) == (plain.tokens, True)


@settings(max_examples=15, deadline=None)
@given(prompt=st.lists(st.integers(0, 40), min_size=1, max_size=24), kind=st.sampled_from(sorted(DRAFTERS)))
def test_lookup_changes_no_answer(target: LlamaModel, prompt: list[int], kind: str) -> None:
    plain = generate(target, prompt, max_tokens=16, end_id=END)
    drafted = generate(target, prompt, max_tokens=16, end_id=END, drafter=DRAFTERS[kind])
    assert drafted.tokens == plain.tokens

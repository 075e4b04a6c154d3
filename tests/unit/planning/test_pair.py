from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from specdec_operator.planning.pair import check_pair
from specdec_operator.planning.refusal import Refused
from tests.unit.specs import facts, head

if TYPE_CHECKING:
    from specdec_operator.api.v1alpha1.model_artifact import ModelFacts
    from specdec_operator.api.v1alpha1.speculation import Method


def test_a_model_without_a_draft_is_no_pair() -> None:
    assert check_pair("None", facts(), None).reason == "NoDraft"


def test_a_draft_with_the_target_s_vocabulary_and_tokenizer_is_verified() -> None:
    assert check_pair("DraftTarget", facts(), facts(layers=16, hidden_size=2048)).reason == "Verified"


def test_a_head_of_the_target_s_shape_is_compatible_but_not_proven() -> None:
    assert check_pair("Eagle3", facts(), head()).reason == "ShapeCompatibleUnverified"


@pytest.mark.parametrize(
    ("draft", "reason"),
    [
        (facts(vocabulary_size=128000), "VocabularyMismatch"),
        (facts(tokenizer_digest="cd" * 32), "TokenizerMismatch"),
        (facts(tokenizer_digest=""), "TokenizerMismatch"),
        (facts(bos_token_id=1), "TokenizerMismatch"),
        (facts(eos_token_ids=[2]), "TokenizerMismatch"),
        (head(), "NotADraftModel"),
    ],
)
def test_a_draft_that_does_not_fit_is_refused(draft: ModelFacts, reason: str) -> None:
    with pytest.raises(Refused) as refused:
        check_pair("DraftTarget", facts(), draft)

    assert [refusal.reason for refusal in refused.value.refusals] == [reason]


@pytest.mark.parametrize(
    ("draft", "reason"),
    [
        (head(hidden_size=5120), "HiddenSizeMismatch"),
        (head(vocabulary_size=32000), "VocabularyMismatch"),
        (facts(), "NotAnEagle3Head"),
        (head(architecture="LlamaForCausalLMEagle"), "NotAnEagle3Head"),
    ],
)
def test_a_head_that_does_not_fit_is_refused(draft: ModelFacts, reason: str) -> None:
    with pytest.raises(Refused) as refused:
        check_pair("Eagle3", facts(), draft)

    assert [refusal.reason for refusal in refused.value.refusals] == [reason]


def test_everything_that_does_not_fit_is_said_at_once() -> None:
    with pytest.raises(Refused) as refused:
        check_pair("DraftTarget", facts(), facts(vocabulary_size=1, tokenizer_digest="ee", bos_token_id=1))

    assert len(refused.value.refusals) == 3


@pytest.mark.parametrize("method", ["Eagle3", "DraftTarget", "None"])
def test_a_head_is_no_target(method: Method) -> None:
    with pytest.raises(Refused, match="swap target and draft"):
        check_pair(method, head(), None if method == "None" else facts())


def test_end_tokens_are_compared_without_their_order() -> None:
    assert check_pair("DraftTarget", facts(eos_token_ids=[1, 2]), facts(eos_token_ids=[2, 1])).reason == "Verified"


def test_a_missing_tokenizer_is_named() -> None:
    with pytest.raises(Refused, match="no tokenizer was found with the draft"):
        check_pair("DraftTarget", facts(), facts(tokenizer_digest=""))

from __future__ import annotations

import pytest

from specdec_operator.api.v1alpha1.status import ProofStatus
from specdec_operator.reconcile.acceptance import Verdict, judge


def verdict(*, drafted: int | None, accepted: int | None, is_reported: bool | None = True) -> Verdict:
    proof = ProofStatus(revision="m-1", pods="p", drafted=drafted, accepted=accepted)
    found = judge("Eagle3", proof, is_reported=is_reported)
    assert found is not None
    return found


def test_the_baseline_gets_no_verdict() -> None:
    assert judge("None", None, is_reported=True) is None


@pytest.mark.parametrize(
    ("drafted", "accepted", "word", "reason"),
    [
        (None, None, "Unknown", "TooFewDrafted"),
        (0, 0, "Unknown", "TooFewDrafted"),
        (63, 0, "Unknown", "TooFewDrafted"),
        (64, 0, "Ineffective", "AcceptanceNearZero"),
        (100, 1, "Ineffective", "AcceptanceNearZero"),
        (100, 2, "Effective", "AcceptanceMeasured"),
        (100, 100, "Effective", "AcceptanceMeasured"),
    ],
)
def test_counts_decide_the_verdict(drafted: int | None, accepted: int | None, word: str, reason: str) -> None:
    found = verdict(drafted=drafted, accepted=accepted)
    assert (found.word, found.reason) == (word, reason)


def test_counts_of_a_release_that_reports_none_are_not_believed() -> None:
    found = verdict(drafted=1000, accepted=0, is_reported=False)
    assert (found.status, found.reason, found.ratio) == ("Unknown", "AcceptanceNotReported", None)


def test_nothing_is_judged_while_nothing_is_prepared() -> None:
    assert verdict(drafted=1000, accepted=0, is_reported=None).reason == "Waiting"


def test_the_message_tells_the_counts() -> None:
    assert "7 of 70 drafted tokens were accepted in the proof (10%)" in verdict(drafted=70, accepted=7).message


def test_a_useless_draft_says_what_to_check() -> None:
    assert "made for this very target" in verdict(drafted=70, accepted=0).message

"""What the proof's counts say of a pair: whether its drafts are accepted. Never invented: no counts, no verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from specdec_operator.api.v1alpha1.speculation import Method
    from specdec_operator.api.v1alpha1.status import ProofStatus

ENOUGH_DRAFTED_TOKENS = 64
"""Fewer drafted tokens say nothing: a short text may be hard to guess."""
NEAR_ZERO = 0.02
"""A pair that fits accepts a fifth of its drafts and more; one in fifty is chance."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A pair's worth, as condition PairEffective and `status.acceptance`.

    Attributes:
        word: For `status.acceptance`.
        ratio: Accepted of drafted tokens; None where that is not known.
    """

    status: Literal["True", "False", "Unknown"]
    reason: str
    message: str
    word: Literal["Effective", "Ineffective", "Unknown"]
    ratio: float | None = None


def judge(method: Method, proof: ProofStatus | None, *, is_reported: bool | None) -> Verdict | None:
    """Judge a pair by what its last proof counted; None for the baseline, which drafts nothing.

    Args:
        proof: The last proof, or None before the first.
        is_reported: Whether the release's responses carry true counts; None while nothing is prepared.
    """
    if method == "None":
        return None
    if is_reported is False:
        return _unknown(
            "AcceptanceNotReported",
            "this release's responses carry no true counts of drafted and accepted tokens: compare the pair with "
            "method None by a benchmark",
        )
    if proof is None or is_reported is None:
        return _unknown("Waiting", "waits for the proof that counts drafted and accepted tokens")
    drafted, accepted = proof.drafted or 0, proof.accepted or 0
    if drafted < ENOUGH_DRAFTED_TOKENS:
        return _unknown(
            "TooFewDrafted",
            f"the proof counted {drafted} drafted tokens; a verdict needs {ENOUGH_DRAFTED_TOKENS}",
        )
    return _measured(drafted, accepted)


def _measured(drafted: int, accepted: int) -> Verdict:
    ratio = accepted / drafted
    counted = f"{accepted} of {drafted} drafted tokens were accepted in the proof ({ratio:.0%})"
    if ratio < NEAR_ZERO:
        return Verdict(
            status="False",
            reason="AcceptanceNearZero",
            message=f"{counted}: every draft is work for nothing. Check that the draft was made for this very target "
            "(its model card names it), that both have one tokenizer and chat template, and the release's known "
            "defects; method None serves faster until then",
            word="Ineffective",
            ratio=ratio,
        )
    return Verdict(status="True", reason="AcceptanceMeasured", message=counted, word="Effective", ratio=ratio)


def _unknown(reason: str, message: str) -> Verdict:
    return Verdict(status="Unknown", reason=reason, message=message, word="Unknown")

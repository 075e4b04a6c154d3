"""The pair check: do a target and its draft fit, by what their files say of themselves.

Pure, and run before anything asks for a GPU. What a method needs of both models is in `pair_heads` and `pair_models`,
what a backend needs besides in `pair_backends`, and what is publicly known of names in `known_pairs`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from specdec_operator.planning.pair_backends import backend_refusals
from specdec_operator.planning.pair_heads import head_refusals, head_verdict
from specdec_operator.planning.pair_kinds import KINDS, WORDS, kind_of, kind_refusals
from specdec_operator.planning.pair_models import model_refusals, model_words
from specdec_operator.planning.refusal import Refusal, Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from specdec_operator.api.v1alpha1.model_facts import ModelFacts
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModelSpec
    from specdec_operator.planning.resolution import Resolution


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A pair that fits.

    Attributes:
        reason: Verified, ShapeCompatibleUnverified or NoDraft.
        message: What was compared, what could not be, and what to be aware of.
    """

    reason: str
    message: str


def check_pair(spec: SpeculativeModelSpec, resolution: Resolution, facts: Mapping[str, ModelFacts]) -> Verdict:
    """Compare both models' facts for a spec's method, backend and release.

    Args:
        facts: Facts per role.

    Raises:
        Refused: The pair can't work, with everything that does not fit.
    """
    target, draft = facts["target"], facts.get("draft")
    if kind_of(target) != "Model":
        raise Refused((_head_as_target(target),))
    refusals = backend_refusals(spec, resolution, facts)
    if draft is not None:
        wrong_kind = kind_refusals(spec.speculation.method, draft)
        refusals = wrong_kind or [*_draft_refusals(spec, resolution, target=target, draft=draft), *refusals]
    if refusals:
        raise Refused(tuple(refusals))
    return _verdict(spec, target, draft)


def _draft_refusals(
    spec: SpeculativeModelSpec, resolution: Resolution, *, target: ModelFacts, draft: ModelFacts
) -> list[Refusal]:
    if KINDS.get(spec.speculation.method) == "Model":
        return model_refusals(target, draft)
    return head_refusals(spec, resolution, target=target, head=draft)


def _verdict(spec: SpeculativeModelSpec, target: ModelFacts, draft: ModelFacts | None) -> Verdict:
    if draft is None:
        return Verdict(reason="NoDraft", message=_without_draft(spec, target))
    if KINDS.get(spec.speculation.method) == "Model":
        return Verdict(reason="Verified", message=model_words(spec, target=target, draft=draft))
    reason, message = head_verdict(spec, target=target, head=draft)
    return Verdict(reason=reason, message=message)


def _without_draft(spec: SpeculativeModelSpec, target: ModelFacts) -> str:
    if spec.speculation.method == "None":
        return "the baseline has no draft"
    if spec.speculation.method == "MTP":
        return f"the target's own next-token layers ({target.next_token_layers}) draft"
    return f"{spec.speculation.method} drafts without a model of its own"


def _head_as_target(target: ModelFacts) -> Refusal:
    return Refusal(
        reason="NotATarget",
        path="spec.target.source",
        message=f"{target.architecture} is {WORDS[kind_of(target)]}, not a model that answers: swap target and draft",
    )

"""The pair check: do a target and its draft fit, by what their files say of themselves.

Pure, and run before anything asks for a GPU. What it compares and why: equal vocabularies are compared by content
(sorted vocabulary, added tokens, merges), since chat templates differ in equal tokenizers; vocabulary sizes must be
equal exactly, since padded sizes differ within one family (TensorRT-LLM issue 2789).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from specdec_operator.planning.refusal import Refusal, Refused

if TYPE_CHECKING:
    from specdec_operator.api.v1alpha1.model_artifact import ModelFacts
    from specdec_operator.api.v1alpha1.speculation import Method


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A pair that fits.

    Attributes:
        reason: Verified, ShapeCompatibleUnverified or NoDraft.
        message: What was compared, and what could not be.
    """

    reason: str
    message: str


def check_pair(method: Method, target: ModelFacts, draft: ModelFacts | None) -> Verdict:
    """Compare both models' facts for a method.

    Raises:
        Refused: The pair can't work, with everything that does not fit.
    """
    if _is_head(target):
        raise Refused((_head_as_target(target),))
    if draft is None:
        return Verdict(reason="NoDraft", message="the baseline has no draft")
    refusals = _head_refusals(target, draft) if method == "Eagle3" else _draft_refusals(target, draft)
    if refusals:
        raise Refused(tuple(refusals))
    if method == "Eagle3":
        return Verdict(
            reason="ShapeCompatibleUnverified",
            message=f"head and target share hidden size {target.hidden_size} and vocabulary {target.vocabulary_size}; "
            "a head's files do not say which target it was trained for",
        )
    return Verdict(
        reason="Verified",
        message=f"both tokenizers are equal, vocabulary {target.vocabulary_size}",
    )


def _is_head(facts: ModelFacts) -> bool:
    return "eagle" in facts.architecture.lower()


def _head_as_target(target: ModelFacts) -> Refusal:
    return Refusal(
        reason="NotATarget",
        path="spec.target.source",
        message=f"{target.architecture} is a draft head, not a model that answers: swap target and draft",
    )


def _head_refusals(target: ModelFacts, head: ModelFacts) -> list[Refusal]:
    if "eagle3" not in head.architecture.lower():
        return [
            Refusal(
                reason="NotAnEagle3Head",
                path="spec.draft.source",
                message=f"{head.architecture} is no EAGLE-3 head: name one made for the target, or use the method "
                "DraftTarget for a whole draft model",
            )
        ]
    refusals = []
    if head.hidden_size != target.hidden_size:
        refusals.append(_mismatch("HiddenSizeMismatch", "hidden size", head.hidden_size, target.hidden_size))
    if head.vocabulary_size != target.vocabulary_size:
        refusals.append(_mismatch("VocabularyMismatch", "vocabulary", head.vocabulary_size, target.vocabulary_size))
    return refusals


def _draft_refusals(target: ModelFacts, draft: ModelFacts) -> list[Refusal]:
    if _is_head(draft):
        return [
            Refusal(
                reason="NotADraftModel",
                path="spec.draft.source",
                message=f"{draft.architecture} is a head, not a whole model: use the method Eagle3, or name a draft "
                "model",
            )
        ]
    refusals = []
    if draft.vocabulary_size != target.vocabulary_size:
        refusals.append(_mismatch("VocabularyMismatch", "vocabulary", draft.vocabulary_size, target.vocabulary_size))
    if draft.tokenizer_digest != target.tokenizer_digest or not target.tokenizer_digest:
        refusals.append(_tokenizer(target, draft))
    if draft.bos_token_id != target.bos_token_id or set(draft.eos_token_ids) != set(target.eos_token_ids):
        refusals.append(
            _mismatch(
                "TokenizerMismatch",
                "bos and eos tokens",
                (draft.bos_token_id, draft.eos_token_ids),
                (target.bos_token_id, target.eos_token_ids),
            )
        )
    return refusals


def _mismatch(reason: str, what: str, draft: object, target: object) -> Refusal:
    return Refusal(
        reason=reason,
        path="spec.draft.source",
        message=f"the draft's {what} {draft} differs from the target's {target}: name a draft made for this target",
    )


def _tokenizer(target: ModelFacts, draft: ModelFacts) -> Refusal:
    missing = [role for role, facts in (("target", target), ("draft", draft)) if not facts.tokenizer_digest]
    if missing:
        text = f"no tokenizer was found with the {' and the '.join(missing)}: add tokenizer.json or tokenizer.model"
    else:
        text = "draft and target turn text into different tokens: name a draft with the target's tokenizer"
    return Refusal(reason="TokenizerMismatch", path="spec.draft.source", message=text)

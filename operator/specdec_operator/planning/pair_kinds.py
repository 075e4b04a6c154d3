"""Which kind of draft a method takes, and which method takes a kind of draft."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from specdec_operator.planning.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from specdec_operator.api.v1alpha1.model_facts import ModelFacts, ModelKind
    from specdec_operator.api.v1alpha1.speculation import Method

KINDS: Final[Mapping[Method, ModelKind]] = {
    "Eagle": "EagleHead",
    "Eagle3": "Eagle3Head",
    "Medusa": "MedusaHeads",
    "ReDrafter": "ReDrafterHead",
    "DraftTarget": "Model",
}
"""The kind of draft that a method takes."""
WORDS: Final[Mapping[ModelKind, str]] = {
    "Model": "a whole model",
    "EagleHead": "an EAGLE head of the first generation",
    "Eagle3Head": "an EAGLE-3 head",
    "MedusaHeads": "a set of MEDUSA heads",
    "ReDrafterHead": "a ReDrafter drafter",
}
_REASONS: Final[Mapping[ModelKind, str]] = {
    "Model": "NotADraftModel",
    "EagleHead": "NotAnEagleHead",
    "Eagle3Head": "NotAnEagle3Head",
    "MedusaHeads": "NotMedusaHeads",
    "ReDrafterHead": "NotAReDrafterHead",
}
_METHODS: Final[Mapping[ModelKind, Method]] = {kind: method for method, kind in KINDS.items()}


def kind_of(facts: ModelFacts) -> ModelKind:
    """The kind of a model; facts from before kinds were told are judged by architecture."""
    name = facts.architecture.lower()
    if facts.kind != "Model":
        return facts.kind
    if "eagle3" in name or facts.draft_vocabulary_size is not None:
        return "Eagle3Head"
    return "EagleHead" if "eagle" in name else "Model"


def kind_refusals(method: Method, draft: ModelFacts) -> list[Refusal]:
    """A draft of another kind than the method takes."""
    wanted, found = KINDS.get(method), kind_of(draft)
    if wanted is None or wanted == found:
        return []
    return [
        Refusal(
            reason=_REASONS[wanted],
            path="spec.draft.source",
            message=f"the draft ({draft.architecture}) is {WORDS[found]}, and {method} takes {WORDS[wanted]}: set "
            f"speculation.method to {_METHODS[found]}, or name {WORDS[wanted]} made for the target",
        )
    ]

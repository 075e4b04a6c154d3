"""Specs of the methods that are built into engines, and facts of what they need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.unit.specs import BASELINE_ENGINE, DRAFT_TARGET, facts, head

if TYPE_CHECKING:
    from specdec_operator.api.v1alpha1.model_facts import ModelFacts

Json = dict[str, Any]

_HEAD = {"source": {"huggingFace": {"repository": "someone/head"}}}
EAGLE: Json = {**BASELINE_ENGINE, "draft": _HEAD, "speculation": {"method": "Eagle"}}
MEDUSA: Json = {**BASELINE_ENGINE, "draft": _HEAD, "speculation": {"method": "Medusa"}}
REDRAFTER: Json = {**BASELINE_ENGINE, "draft": _HEAD, "speculation": {"method": "ReDrafter"}}
LOOKAHEAD: Json = {**BASELINE_ENGINE, "speculation": {"method": "Lookahead"}}
ENGINE_SPECS = {
    "eagle": EAGLE,
    "medusa": MEDUSA,
    "redrafter": REDRAFTER,
    "lookahead": LOOKAHEAD,
    "draft-target": DRAFT_TARGET,
    "baseline-engine": BASELINE_ENGINE,
}


def eagle_head(**changes: Any) -> ModelFacts:
    """Facts of an EAGLE-1 head for `facts()`."""
    return head(**{"architecture": "LlamaForCausalLM", "kind": "EagleHead", "draft_vocabulary_size": None, **changes})


def medusa_heads(**changes: Any) -> ModelFacts:
    """Facts of MEDUSA heads for `facts()`."""
    shape = {"kind": "MedusaHeads", "architecture": "MedusaHeads", "medusa_heads": 4, "medusa_layers": 1}
    return head(**{**shape, "draft_vocabulary_size": None, **changes})


def drafter(**changes: Any) -> ModelFacts:
    """Facts of a ReDrafter drafter for `facts()`."""
    shape = {"kind": "ReDrafterHead", "architecture": "ReDrafterHead", "draft_vocabulary_size": None}
    return head(**{**shape, **changes})


def engine_facts(method: str, **changes: Any) -> dict[str, ModelFacts]:
    """Facts per role that fit a method on engines.

    Args:
        changes: Of the target.
    """
    drafts = {
        "Eagle": eagle_head,
        "Medusa": medusa_heads,
        "ReDrafter": drafter,
        "DraftTarget": lambda: facts(layers=16, commit="2" * 40),
    }
    target = {"target": facts(**changes)}
    return {**target, "draft": drafts[method]()} if method in drafts else target

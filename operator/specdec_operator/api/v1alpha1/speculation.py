"""How the pair speculates."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from specdec_operator.api.model import ApiModel
from specdec_operator.api.rules import Rule

Method = Literal["Eagle3", "DraftTarget", "None"]


class DraftTargetOptions(ApiModel):
    """Options of the method DraftTarget."""

    logits_transfer: Literal["Fast"] = "Fast"
    """How draft logits reach the target. Fast: sent from draft to target ranks directly, between processes."""


class Speculation(ApiModel):
    """The method and its options."""

    method: Method
    """Eagle3: an EAGLE-3 head drafts. DraftTarget: a smaller model drafts. None: the baseline, no draft."""
    max_draft_tokens: Annotated[int, Field(ge=1, le=64)] | None = None
    """The most tokens drafted for one step of the target. Left out: 3 for Eagle3, 10 for DraftTarget."""
    draft_target: DraftTargetOptions | None = None
    """Options of the method DraftTarget."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            expression="!has(self.draftTarget) || self.method == 'DraftTarget'",
            message="draftTarget belongs to the method DraftTarget: remove it or change method",
            holds=lambda self: self.draft_target is None or self.method == "DraftTarget",
            field=".draftTarget",
            reason="FieldValueForbidden",
        ),
        Rule(
            expression="!has(self.maxDraftTokens) || self.method != 'None'",
            message="the method None drafts nothing: remove maxDraftTokens or choose a method",
            holds=lambda self: self.max_draft_tokens is None or self.method != "None",
            field=".maxDraftTokens",
            reason="FieldValueForbidden",
        ),
    )

"""How the pair speculates."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Literal, get_args

from pydantic import Field

from specdec_operator.api.model import ApiModel
from specdec_operator.api.rules import Rule

Method = Literal["Eagle", "Eagle2", "Eagle3", "Medusa", "DraftTarget", "NGram", "Lookahead", "ReDrafter", "MTP", "None"]
METHODS: Final[tuple[Method, ...]] = get_args(Method)
DRAFTING_METHODS: Final[tuple[Method, ...]] = ("Eagle", "Eagle2", "Eagle3", "Medusa", "DraftTarget", "ReDrafter")
"""Methods whose proposals come from a model or head of its own."""
DERIVED_LENGTH_METHODS: Final[tuple[Method, ...]] = ("Lookahead", "ReDrafter", "None")
"""Methods whose draft length follows from their other options, or that draft nothing."""

ChoicePath = Annotated[list[Annotated[int, Field(ge=0, le=63)]], Field(min_length=1, max_length=16)]


class Choices(ApiModel):
    """The tree of candidates that a head proposes: exactly one of the members."""

    preset: Literal["mc_sim_7b_63"] | None = None
    """A tree by its name, as TensorRT-LLM knows it: 63 nodes, four levels deep."""
    paths: Annotated[list[ChoicePath], Field(min_length=1, max_length=256)] | None = None
    """Nodes as paths from the root: `[0]` is the head's first guess, `[0, 1]` the second guess after it. Nodes on the
    way to a path are added where they are missing."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            expression="has(self.preset) != has(self.paths)",
            message="give exactly one of preset (a tree by name) and paths (its nodes)",
            holds=lambda self: (self.preset is None) != (self.paths is None),
        ),
    )


class EagleOptions(ApiModel):
    """Options of the method Eagle."""

    layers: Annotated[int, Field(ge=1, le=16)] | None = None
    """How many tokens deep the tree is. Left out: the depth of choices, or 4."""
    max_non_leaves_per_layer: Annotated[int, Field(ge=1, le=64)] | None = None
    """The most nodes of one level that have followers. Left out: what choices need, or 10."""
    choices: Choices | None = None
    """The tree, on TensorRTEngine. Left out: mc_sim_7b_63."""


class MedusaOptions(ApiModel):
    """Options of the method Medusa."""

    heads: Annotated[int, Field(ge=1, le=16)] | None = None
    """How many heads the draft has. Left out: as many as its weights hold (its config.json may say fewer)."""
    choices: Choices | None = None
    """The tree, on TensorRTEngine. Left out: mc_sim_7b_63, which needs four heads."""


class DraftTargetOptions(ApiModel):
    """Options of the method DraftTarget."""

    logits_transfer: Literal["Disabled", "Standard", "Fast"] | None = None
    """How draft logits reach the target on TensorRTEngine. Fast: sent from draft to target ranks directly, between
    processes. Standard: through Triton. Disabled: tokens alone are compared. Left out: Fast where draft and target
    have GPUs of their own, Disabled where they share."""


class NGramOptions(ApiModel):
    """Options of the method NGram: drafts are looked up in the text so far."""

    max_matching_length: Annotated[int, Field(ge=1, le=64)] | None = None
    """The longest piece of text that is looked up, in tokens. Left out: 4 on LLMAPI, 5 on VLLM."""
    min_matching_length: Annotated[int, Field(ge=1, le=64)] | None = None
    """The shortest piece of text that is looked up, in tokens; on VLLM."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            expression=(
                "!has(self.minMatchingLength) || !has(self.maxMatchingLength) || "
                "self.minMatchingLength <= self.maxMatchingLength"
            ),
            message="minMatchingLength must not exceed maxMatchingLength",
            holds=lambda self: (
                self.min_matching_length is None
                or self.max_matching_length is None
                or self.min_matching_length <= self.max_matching_length
            ),
            field=".minMatchingLength",
        ),
    )


class LookaheadOptions(ApiModel):
    """Options of the method Lookahead. The draft length follows from them."""

    window_size: Annotated[int, Field(ge=1, le=64)] = 7
    """How many places are guessed at once."""
    n_gram_size: Annotated[int, Field(ge=1, le=32, alias="nGramSize")] = 7
    """The length of the n-grams, in tokens."""
    verification_set_size: Annotated[int, Field(ge=0, le=64)] = 7
    """How many n-grams are verified at once."""


class ReDrafterOptions(ApiModel):
    """Options of the method ReDrafter. The draft length follows from them."""

    beams: Annotated[int, Field(ge=1, le=32)] = 5
    """How many drafts are searched side by side."""
    draft_length_per_beam: Annotated[int, Field(ge=1, le=32)] = 5
    """The length of each, in tokens."""
    greedy_search: bool = True
    """Whether the search takes the likeliest tokens."""


def _belongs(field: str, attribute: str, *, method: Method) -> Rule:
    """Options stand beside their own method alone."""
    return Rule(
        expression=f"!has(self.{field}) || self.method == '{method}'",
        message=f"{field} belongs to the method {method}: remove it or change method",
        holds=lambda self: getattr(self, attribute) is None or self.method == method,
        field=f".{field}",
        reason="FieldValueForbidden",
    )


class Speculation(ApiModel):
    """The method and its options."""

    method: Method
    """Eagle, Eagle3: a head made for the target drafts. Medusa: heads that each guess one place ahead. DraftTarget: a
    smaller model drafts. NGram: drafts are found in the text so far. Lookahead: the target guesses by itself.
    ReDrafter: a recurrent head drafts. MTP: the target's own next-token layers draft. None: the baseline. Eagle2 is
    refused, with what to use in its place."""
    max_draft_tokens: Annotated[int, Field(ge=1, le=255)] | None = None
    """The most tokens drafted for one step of the target. Left out: the method's usual number (see status.pins or
    docs)."""
    eagle: EagleOptions | None = None
    """Options of the method Eagle."""
    medusa: MedusaOptions | None = None
    """Options of the method Medusa."""
    draft_target: DraftTargetOptions | None = None
    """Options of the method DraftTarget."""
    n_gram: Annotated[NGramOptions | None, Field(alias="nGram")] = None
    """Options of the method NGram."""
    lookahead: LookaheadOptions | None = None
    """Options of the method Lookahead."""
    re_drafter: ReDrafterOptions | None = None
    """Options of the method ReDrafter."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        _belongs("eagle", "eagle", method="Eagle"),
        _belongs("medusa", "medusa", method="Medusa"),
        _belongs("draftTarget", "draft_target", method="DraftTarget"),
        _belongs("nGram", "n_gram", method="NGram"),
        _belongs("lookahead", "lookahead", method="Lookahead"),
        _belongs("reDrafter", "re_drafter", method="ReDrafter"),
        Rule(
            expression="!has(self.maxDraftTokens) || self.method != 'None'",
            message="the method None drafts nothing: remove maxDraftTokens or choose a method",
            holds=lambda self: self.max_draft_tokens is None or self.method != "None",
            field=".maxDraftTokens",
            reason="FieldValueForbidden",
        ),
        Rule(
            expression="!has(self.maxDraftTokens) || !(self.method in ['Lookahead', 'ReDrafter'])",
            message="the draft length of this method follows from its options: remove maxDraftTokens",
            holds=lambda self: self.max_draft_tokens is None or self.method not in ("Lookahead", "ReDrafter"),
            field=".maxDraftTokens",
            reason="FieldValueForbidden",
        ),
    )

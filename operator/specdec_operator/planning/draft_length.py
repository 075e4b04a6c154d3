"""How many tokens are drafted for one step of the target: declared, usual, or what the method's options amount to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specdec_operator.api.v1alpha1.speculation import LookaheadOptions, ReDrafterOptions

if TYPE_CHECKING:
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModelSpec
    from specdec_operator.planning.choices import Tree


def draft_tokens(spec: SpeculativeModelSpec, *, usual: int | None, tree: Tree | None) -> int:
    """The most tokens drafted for one step; 0 without speculation.

    Args:
        usual: The method's number on its backend where the spec says nothing; None if it follows from options.
        tree: The draft tree that the spec declares.
    """
    speculation = spec.speculation
    if speculation.method == "Lookahead":
        return lookahead_tokens(speculation.lookahead or LookaheadOptions())
    if speculation.method == "ReDrafter":
        options = speculation.re_drafter or ReDrafterOptions()
        return options.beams * options.draft_length_per_beam
    if speculation.max_draft_tokens is not None:
        return speculation.max_draft_tokens
    return len(tree) if tree else usual or 0


def lookahead_tokens(options: LookaheadOptions) -> int:
    """What a window, its n-grams and those verified amount to; (1, 1, 0) drafts nothing."""
    length = options.n_gram_size
    first = 0 if length == 1 else length - 2
    return first + (options.window_size - 1 + options.verification_set_size) * (length - 1)

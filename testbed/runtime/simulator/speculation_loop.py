"""What the BLS model does with a draft and a target: propose, judge, go on from what was kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


@dataclass(frozen=True)
class Proposal:
    """What the draft model answered.

    Attributes:
        tokens: proposed tokens.
        logits: their logits tensor, or a fast-logits handle in its form; none when not asked for.
    """

    tokens: tuple[int, ...]
    logits: NDArray[Any] | None = None


@dataclass(frozen=True)
class Judgement:
    """What one call of the target model answered."""

    tokens: tuple[int, ...]
    drafted: int = 0
    accepted: int = 0


@dataclass(frozen=True)
class SpeculativeAnswer:
    """A whole answer.

    Attributes:
        tokens: new tokens.
        drafted: of the last target call only, as the original reports it.
        accepted: of the last target call only.
        total_drafted: of all calls; for the log.
        total_accepted: of all calls; for the log.
        target_calls: requests that the target answered.
    """

    tokens: tuple[int, ...]
    drafted: int
    accepted: int
    total_drafted: int
    total_accepted: int
    target_calls: int


def speculate(
    prompt: tuple[int, ...],
    *,
    max_tokens: int,
    num_draft_tokens: int,
    end_id: int,
    draft: Callable[[tuple[int, ...], int], Proposal],
    target: Callable[[tuple[int, ...], Proposal | None, int], Judgement],
) -> SpeculativeAnswer:
    """Generate up to `max_tokens` new tokens.

    Args:
        prompt: the tokens to go on from.
        max_tokens: limit of new tokens.
        num_draft_tokens: what the draft proposes each time, fewer near the limit.
        end_id: the end mark.
        draft: asked with the tokens so far and how many to propose.
        target: asked with the tokens so far, the proposal, and how many new tokens are left.
    """
    tokens = prompt
    judgements: list[Judgement] = []
    while True:
        remaining = len(prompt) + max_tokens - len(tokens)
        wanted = min(num_draft_tokens, remaining - 1)
        proposal = draft(tokens, wanted) if wanted > 0 else None
        judgement = target(tokens, proposal, remaining)
        judgements.append(judgement)
        tokens = (*tokens, *judgement.tokens)
        ended = not judgement.tokens or judgement.tokens[-1] == end_id
        if ended or len(tokens) >= len(prompt) + max_tokens:
            break
    return SpeculativeAnswer(
        tokens=tokens[len(prompt) :],
        drafted=judgements[-1].drafted,
        accepted=judgements[-1].accepted,
        total_drafted=sum(judgement.drafted for judgement in judgements),
        total_accepted=sum(judgement.accepted for judgement in judgements),
        target_calls=len(judgements),
    )

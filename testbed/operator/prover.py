"""A prover for pods that kwok plays: nothing answers there, so the outcome is told."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from specdec_operator.triton.proof import Outcome, Proof

if TYPE_CHECKING:
    from specdec_operator.triton.proof import Endpoint, ProofRequest

REVISION_DIGITS = 10
SERVED = Proof(outcome=Outcome.SERVED, message="answered", text=" Paris.")
UNREACHABLE = Proof(outcome=Outcome.UNREACHABLE, message="no route to the Service; run where it can be reached")
WRONG_ANSWER = Proof(outcome=Outcome.WRONG_ANSWER, message="the answer holds no text; see the pod's log")


class ScriptedProver:
    """Answers for every model as it is told, and counts.

    Attributes:
        outcomes: What a proof finds, by the model's name; Served for models that aren't named.
        asked: How often a model was asked, by its name.
    """

    def __init__(self) -> None:
        self.outcomes: dict[str, Proof] = {}
        self.asked: Counter[str] = Counter()

    async def prove(self, endpoint: Endpoint, request: ProofRequest) -> Proof:
        """Return what is told for the model whose revision is asked for."""
        del endpoint
        model = request.revision[: -REVISION_DIGITS - 1]
        self.asked[model] += 1
        return self.outcomes.get(model, SERVED)

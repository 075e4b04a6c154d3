"""What one engine does with one request: generate, or judge the draft tokens that came with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from testbed.runtime.inference.errors import InferenceError
from testbed.runtime.inference.lookahead import LookaheadConfig, LookaheadDrafter
from testbed.runtime.inference.speculation import TemperatureSampler, generate, greedy, verify
from testbed.runtime.inference.tree_generation import generate_with_trees
from testbed.runtime.simulator.errors import RequestError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from testbed.runtime.inference.speculation import Sampler
    from testbed.runtime.inference.tree_generation import TreeDrafter
    from testbed.runtime.simulator.engine import BuildLimits
    from testbed.runtime.simulator.engine_drafters import LoadedEngine


@dataclass(frozen=True)
class LogitsHandle:
    """Where a target rank fetches a draft's logits: fast logits passes this through Triton in their stead."""

    request: int
    rank: int


@dataclass(frozen=True)
class EngineRequest:
    """One request to an engine.

    Attributes:
        tokens: the prompt.
        max_tokens: limit of new tokens.
        end_id: the end mark; -1 for none.
        draft_tokens: tokens to judge; empty for plain generation.
        draft_logits: [draft tokens, vocabulary] that came with them.
        handle: the draft's logits by fast logits.
        return_logits: whether the answer carries the new tokens' logits.
        temperature: 0 for greedy choice.
        seed: of the sampler.
        lookahead: the request's own sizes; none for the model's.
    """

    tokens: tuple[int, ...]
    max_tokens: int
    end_id: int
    draft_tokens: tuple[int, ...] = ()
    draft_logits: NDArray[np.float32] | None = None
    handle: LogitsHandle | None = None
    return_logits: bool = False
    temperature: float = 0.0
    seed: int = 0
    lookahead: LookaheadConfig | None = None


@dataclass(frozen=True)
class EngineResult:
    """What an engine answers.

    Attributes:
        tokens: the new tokens; the end mark, if met, is the last.
        drafted: draft tokens that were judged.
        accepted: those of them that were kept.
        logits: [new tokens, vocabulary], when asked for.
        handle: in their stead, with fast logits.
        guessed: nodes of all draft trees; 0 where an engine doesn't draft itself.
        passes: of the target, where the engine drafts itself.
    """

    tokens: tuple[int, ...]
    drafted: int = 0
    accepted: int = 0
    logits: NDArray[np.float32] | None = None
    handle: LogitsHandle | None = None
    guessed: int = 0
    passes: int = 0


class EngineExecutor:
    """Runs a loaded engine within the limits that it was built for."""

    def __init__(self, engine: LoadedEngine, limits: BuildLimits) -> None:
        self._model = engine.model
        self._drafter = engine.drafter
        self._zeros = engine.zeros
        self._limits = limits

    def run(self, request: EngineRequest) -> EngineResult:
        """Answer one request.

        Raises:
            RequestError: the request is outside of the engine's limits.
        """
        self._check(request)
        room = self._limits.max_seq_len - len(request.tokens)
        try:
            if self._zeros:
                return EngineResult((0,) * min(request.max_tokens, room))
            drafter = self._drafter_of(request)
            if request.draft_tokens:
                return self._judge(request, room)
            if drafter is not None:
                return self._draft(request, room, drafter)
            return self._generate(request, room)
        except (InferenceError, ValueError) as problem:
            raise RequestError(str(problem)) from problem

    def _check(self, request: EngineRequest) -> None:
        longest = self._limits.max_seq_len - 1
        if len(request.tokens) > longest:
            raise RequestError(f"Prompt length ({len(request.tokens)}) exceeds maximum input length ({longest}).")
        drafted, limit = len(request.draft_tokens), self._limits.max_draft_len
        if drafted > limit:
            raise RequestError(
                f"Number of draft tokens ({drafted}) is larger than maximum number of draft tokens ({limit})"
            )
        if request.draft_tokens and request.temperature > 0:
            raise RequestError("the simulator judges draft tokens greedily only; send no temperature")
        if self._drafter is not None and (request.draft_tokens or request.temperature > 0):
            raise RequestError("an engine that drafts itself takes no draft_input_ids, and is simulated greedily only")
        _check_logits(request, self._model.config.vocab_size)

    def _drafter_of(self, request: EngineRequest) -> TreeDrafter | None:
        if request.lookahead is None:
            return self._drafter
        if not isinstance(self._drafter, LookaheadDrafter):
            raise RequestError(
                "Cannot set the request lookahead decoding configuration when model instance lookahead parameters "
                "are not set."
            )
        if not request.lookahead.within(self._drafter.config):
            raise RequestError("the request's lookahead configuration is larger than the model instance's")
        return LookaheadDrafter(request.lookahead)

    def _draft(self, request: EngineRequest, room: int, drafter: TreeDrafter) -> EngineResult:
        limit = min(request.max_tokens, room)
        answer = generate_with_trees(
            self._model, request.tokens, max_tokens=limit, end_id=request.end_id, drafter=drafter
        )
        tokens = (*answer.tokens, request.end_id) if answer.stopped else answer.tokens
        return EngineResult(
            tokens,
            drafted=answer.drafted,
            accepted=answer.accepted,
            logits=self._logits(request, tokens) if request.return_logits else None,
            guessed=answer.guessed,
            passes=answer.target_passes,
        )

    def _judge(self, request: EngineRequest, room: int) -> EngineResult:
        proposed = request.draft_tokens[: max(0, min(request.max_tokens, room) - 1)]
        judged = verify(self._model, request.tokens, proposed, end_id=request.end_id)
        return EngineResult(judged.tokens, drafted=len(proposed), accepted=judged.accepted)

    def _generate(self, request: EngineRequest, room: int) -> EngineResult:
        sampler: Sampler = greedy
        if request.temperature > 0:
            sampler = TemperatureSampler(request.temperature, request.seed)
        limit = min(request.max_tokens, room)
        answer = generate(self._model, request.tokens, max_tokens=limit, end_id=request.end_id, sampler=sampler)
        tokens = (*answer.tokens, request.end_id) if answer.stopped else answer.tokens
        return EngineResult(tokens, logits=self._logits(request, tokens) if request.return_logits else None)

    def _logits(self, request: EngineRequest, tokens: tuple[int, ...]) -> NDArray[np.float32]:
        inputs = (*request.tokens, *tokens[:-1])
        logits = self._model.forward(inputs, self._model.cache()).logits
        return np.asarray(logits[len(request.tokens) - 1 :], dtype=np.float32)


def _check_logits(request: EngineRequest, vocabulary: int) -> None:
    logits = request.draft_logits
    if logits is None:
        return
    expected = (len(request.draft_tokens), vocabulary)
    if logits.shape != expected:
        raise RequestError(f"draft_logits has the shape {logits.shape}, expected {expected}")
    # Not argmax: halves have ties, of which the draft may have chosen another one.
    chosen = logits[np.arange(len(logits)), list(request.draft_tokens)]
    if not np.array_equal(chosen, logits.max(axis=-1)):
        raise RequestError("draft_logits don't belong to draft_input_ids: their largest entries are other tokens")

"""Proofs beside the reconcile workers: a server that hangs keeps nobody waiting but its own namespace's proofs.

A run asks how a model's proof stands, and goes on; when the proof ends, the model runs again. What is kept here is
lost with the process, and found out again.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections import defaultdict
from contextlib import asynccontextmanager
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from specdec_operator.reconcile.queue import Backoff
from specdec_operator.triton.proof import Outcome, Proof

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from specdec_operator.reconcile.queue import Key
    from specdec_operator.triton.proof import Endpoint, ProofRequest, Prover

PLACES = 8
"""Proofs of one namespace at once; one takes milliseconds of a server that is well, and a minute of one that hangs."""
_PATIENCE_SECONDS = 0.25
"""How long a run waits for an answer, which then costs no further run and no further status."""
_BACKOFF = Backoff(initial=0.5, maximum=30.0, spread=0.0)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Standing:
    """How a model's proof stands.

    Attributes:
        proof: what the last one found; None before the first has ended.
        failing_seconds: how long ago the first of those that failed in a row ended.
        again_after: seconds until the next is due; None while one is under way, and after an answer.
    """

    proof: Proof | None = None
    failing_seconds: float = 0.0
    again_after: float | None = None


@dataclass
class _Case:
    """The proofs of one model about the same revision and pods."""

    about: str
    task: asyncio.Task[None] | None = None
    is_watched: bool = False
    last: Proof | None = None
    failures: int = 0
    failing_since: float = 0.0
    due: float = 0.0


class BackgroundProofs:
    """Proves models, at most so many of one namespace at once.

    Args:
        prover: proves one.
        again: has a model run again.
        clock: seconds on a scale that only grows.
        places: proofs of one namespace at once.
    """

    def __init__(
        self,
        prover: Prover,
        *,
        again: Callable[[Key], None],
        clock: Callable[[], float] = time.monotonic,
        places: int = PLACES,
    ) -> None:
        self._prover = prover
        self._again = again
        self._clock = clock
        self._cases: dict[Key, _Case] = {}
        self._turns: defaultdict[str, _Turns] = defaultdict(lambda: _Turns(places))

    async def standing(self, key: Key, *, about: str, endpoint: Endpoint, request: ProofRequest) -> Standing:
        """Start a model's proof if one is due, and say how it stands.

        Args:
            key: the model.
            about: what is proven; proofs of anything else end.
            endpoint: whom to ask.
            request: what to ask.
        """
        case = self._cases.get(key)
        if case is None or case.about != about:
            self.forget(key)
            case = self._cases[key] = _Case(about, due=self._clock())
        if case.task is None and self._clock() >= case.due and not _is_served(case.last):
            case.task = asyncio.create_task(self._prove(key, case, endpoint, request), name=f"proof of {key}")
        if case.task:
            case.is_watched = True
            await asyncio.wait({case.task}, timeout=_PATIENCE_SECONDS)
            case.is_watched = False
        return self._told(key, case)

    def forget(self, key: Key) -> None:
        """End a model's proof."""
        case = self._cases.pop(key, None)
        if case and case.task:
            case.task.cancel()

    async def close(self) -> None:
        """End all proofs."""
        tasks = [case.task for case in self._cases.values() if case.task]
        for key in list(self._cases):
            self.forget(key)
        await asyncio.gather(*tasks, return_exceptions=True)

    def _told(self, key: Key, case: _Case) -> Standing:
        if _is_served(case.last):
            self.forget(key)
            return Standing(proof=case.last)
        now = self._clock()
        failing = now - case.failing_since if case.last else 0.0
        again = None if case.task else max(0.0, case.due - now)
        return Standing(proof=case.last, failing_seconds=failing, again_after=again)

    async def _prove(self, key: Key, case: _Case, endpoint: Endpoint, request: ProofRequest) -> None:
        async with self._turns[key.namespace].turn(case.failures):
            try:
                case.last = await self._prover.prove(endpoint, request)
            except Exception:  # noqa: BLE001 - the task boundary: the model is told, and proven again
                _log.exception("a proof failed", extra={"namespace": key.namespace, "object": key.name})
                message = "the proof itself failed, by a defect of the operator: see its log"
                case.last = Proof(outcome=Outcome.WRONG_ANSWER, message=message)
        now = self._clock()
        if not _is_served(case.last):
            case.failing_since = case.failing_since if case.failures else now
            case.failures += 1
        case.due = now + _BACKOFF.delay(failures=max(case.failures, 1), random_share=0.0)
        case.task = None
        if not case.is_watched:
            self._again(key)


class _Turns:
    """So many at once; of those that wait, the one that has failed least often is next."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._order = itertools.count()

    @asynccontextmanager
    async def turn(self, failures: int) -> AsyncIterator[None]:
        """Wait for a place and hold it."""
        await self._take(failures)
        try:
            yield
        finally:
            self._pass_on()

    async def _take(self, failures: int) -> None:
        if self._free:
            self._free -= 1
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heappush(self._waiting, (failures, next(self._order), place))
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        while self._waiting:
            _, _, place = heappop(self._waiting)
            if not place.done():
                place.set_result(None)
                return
        self._free += 1


def _is_served(proof: Proof | None) -> bool:
    return proof is not None and proof.outcome is Outcome.SERVED

"""The keyed work queue: each key is worked on by one worker at a time, retried with growing delays, never lost.

A key added while it waits is one run, not two; a key added while it runs is run again afterwards. Nothing but the key
is kept: a run reads the live state, so it doesn't matter how many changes led to it. Changes come in bursts (a run's
own writes, then what controllers make of them), so a key rests after each run: one run sees what a burst led to.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

MAXIMUM_DOUBLINGS = 32

Outcome = Literal["success", "requeue_after", "error"]


@dataclass(frozen=True)
class Key:
    """What a run is about.

    Attributes:
        kind: kind of the object.
        namespace: its namespace.
        name: its name.
    """

    kind: Literal["SpeculativeModel", "ModelArtifact"]
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


def owning_models(namespace: str, owners: Iterable[Mapping[str, Any]]) -> list[Key]:
    """The models that use an artifact."""
    return [
        Key(kind="SpeculativeModel", namespace=namespace, name=owner["name"])
        for owner in owners
        if owner.get("kind") == "SpeculativeModel"
    ]


@dataclass(frozen=True)
class Result:
    """How a run ended well.

    Attributes:
        requeue_after: seconds until the key is to be run again; None waits for the next event.
    """

    requeue_after: float | None = None


@dataclass(frozen=True)
class Backoff:
    """How long a key waits after failures in a row.

    Attributes:
        initial: seconds after the first failure; doubles with each.
        maximum: most seconds.
        spread: part of the delay, from 0 to 1, that is random, so that keys that failed together don't return together.
    """

    initial: float = 0.5
    maximum: float = 300.0
    spread: float = 0.5

    def delay(self, *, failures: int, random_share: float, at_most: float = math.inf) -> float:
        """Return the seconds to wait after so many failures in a row; random_share is from 0 to 1."""
        full = min(self.initial * 2.0 ** min(failures - 1, MAXIMUM_DOUBLINGS), self.maximum, at_most)
        return full * (1 - self.spread * random_share)


class QueueObserver(Protocol):
    """Is told what the queue does, for metrics; its methods must be quick and not fail."""

    def depth(self, keys: int) -> None:
        """So many keys wait for a worker now."""

    def started(self, key: Key, *, waited: float) -> None:
        """A run starts, so many seconds after its key was due."""

    def finished(self, key: Key, *, seconds: float, outcome: Outcome) -> None:
        """A run has ended."""

    def retried(self, key: Key, *, delay: float) -> None:
        """A failed key returns after so many seconds."""


class SilentObserver:
    """Tells nobody."""

    def depth(self, keys: int) -> None:
        """Ignore it."""

    def started(self, key: Key, *, waited: float) -> None:
        """Ignore it."""

    def finished(self, key: Key, *, seconds: float, outcome: Outcome) -> None:
        """Ignore it."""

    def retried(self, key: Key, *, delay: float) -> None:
        """Ignore it."""


class QueueShutDown(Exception):  # noqa: N818 - a state, not a mistake
    """There is no more work."""


@dataclass(frozen=True)
class _Scheduled:
    due: float
    handle: asyncio.TimerHandle


class WorkQueue:
    """Keys that want to be run.

    All methods are called in one event loop.

    Args:
        backoff: delays after failures.
        clock: seconds on a scale that only grows.
        jitter: random numbers from 0 to 1.
        observer: told what happens.
        rest: seconds between a key's run and its next one; a key that has not run for so long runs at once.
    """

    def __init__(
        self,
        *,
        backoff: Backoff | None = None,
        clock: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
        observer: QueueObserver | None = None,
        rest: float = 0.0,
    ) -> None:
        self.observer = observer or SilentObserver()
        self.clock = clock
        self._backoff = backoff or Backoff()
        self._jitter = jitter
        self._rest = rest
        # Insertion order is the order of service; the value is when the key was due.
        self._waiting: dict[Key, float] = {}
        self._again: set[Key] = set()
        self._active: set[Key] = set()
        self._resting: dict[Key, asyncio.TimerHandle] = {}
        self._scheduled: dict[Key, _Scheduled] = {}
        self._failures: dict[Key, int] = {}
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._closed = False
        self._moved = clock()

    @property
    def depth(self) -> int:
        """How many keys wait for a worker."""
        return len(self._waiting)

    @property
    def stalled(self) -> float:
        """For how many seconds keys have waited while no run began or ended; 0 when none waits."""
        if not self._waiting:
            return 0.0
        return self.clock() - max(self._moved, min(self._waiting.values()))

    def add(self, key: Key) -> None:
        """Have a key run as soon as a worker is free; once, however often it is added before it starts."""
        if not self._closed:
            self._enqueue(key)

    def add_after(self, key: Key, delay: float) -> None:
        """Have a key run after so many seconds; of several delays of a key the earliest counts.

        A run of the key that starts earlier for another reason takes its place.
        """
        if self._closed:
            return
        if delay <= 0:
            self._enqueue(key)
            return
        due = self.clock() + delay
        earlier = self._scheduled.get(key)
        if earlier is not None:
            if earlier.due <= due:
                return
            earlier.handle.cancel()
        handle = asyncio.get_running_loop().call_later(delay, self._fall_due, key)
        self._scheduled[key] = _Scheduled(due, handle)

    async def get(self) -> Key:
        """Wait for a key and mark it as running; :meth:`done` must follow.

        Raises:
            QueueShutDown: the queue is shut down, and nothing is left to do.
        """
        while not self._waiting:
            if self._closed:
                raise QueueShutDown
            self._wake.clear()
            await self._wake.wait()
        return self._start(next(iter(self._waiting)))

    def done(self, key: Key) -> None:
        """Say that a key's run has ended; a key that was added meanwhile waits again once it has rested."""
        self._active.discard(key)
        self._moved = self.clock()
        if self._rest and not self._closed:
            self._resting[key] = asyncio.get_running_loop().call_later(self._rest, self._rested, key)
        else:
            self._resume(key)
        self._note_idle()

    def forget(self, key: Key) -> None:
        """Say that a key's run succeeded: its next failure starts with the first delay again."""
        self._failures.pop(key, None)

    def retry(self, key: Key, *, at_most: float = math.inf) -> float:
        """Have a failed key run again after its backoff, or after so many seconds at most; return the delay."""
        failures = self._failures.get(key, 0) + 1
        self._failures[key] = failures
        delay = self._backoff.delay(failures=failures, random_share=self._jitter(), at_most=at_most)
        self.observer.retried(key, delay=delay)
        self.add_after(key, delay)
        return delay

    async def shut_down(self, *, drain: bool = False) -> None:
        """Take no more keys, and wait until no run is in progress.

        Args:
            drain: first run what waits now; workers must be there to do so. Delayed keys are dropped in any case.
        """
        self._closed = True
        for scheduled in self._scheduled.values():
            scheduled.handle.cancel()
        self._scheduled.clear()
        if not drain:
            self._waiting.clear()
            self._again.clear()
            self.observer.depth(0)
        for key in list(self._resting):
            self._resting[key].cancel()
            self._rested(key)
        self._wake.set()
        self._note_idle()
        await self._idle.wait()

    def _enqueue(self, key: Key) -> None:
        if key in self._waiting:
            return
        if key in self._active or key in self._resting:
            self._again.add(key)
            return
        self._wait(key)

    def _fall_due(self, key: Key) -> None:
        del self._scheduled[key]
        self._enqueue(key)

    def _rested(self, key: Key) -> None:
        del self._resting[key]
        self._resume(key)

    def _resume(self, key: Key) -> None:
        if key in self._again:
            self._again.remove(key)
            self._wait(key)

    def _wait(self, key: Key) -> None:
        self._waiting[key] = self.clock()
        self._idle.clear()
        self.observer.depth(len(self._waiting))
        self._wake.set()

    def _start(self, key: Key) -> Key:
        due = self._waiting.pop(key)
        self._moved = self.clock()
        self._active.add(key)
        self._idle.clear()
        scheduled = self._scheduled.pop(key, None)
        if scheduled is not None:
            # This run sees the live state, and says itself when the next one is due.
            scheduled.handle.cancel()
        self.observer.depth(len(self._waiting))
        self.observer.started(key, waited=self.clock() - due)
        return key

    def _note_idle(self) -> None:
        if not self._active and not self._waiting:
            self._idle.set()

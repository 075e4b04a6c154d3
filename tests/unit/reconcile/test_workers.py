from __future__ import annotations

import asyncio
import logging
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from specdec_operator.cluster.errors import Conflict, ServerUnavailable
from specdec_operator.reconcile.queue import Backoff, Key, Result, WorkQueue
from specdec_operator.reconcile.workers import run_workers
from tests.virtual_time import run_in_virtual_time, virtual_now

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from specdec_operator.reconcile.queue import Outcome

KEYS = [Key("SpeculativeModel", "ns", f"m{number}") for number in range(5)]
A = KEYS[0]


class Outcomes:
    """An observer of how runs end."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, float]] = []

    def depth(self, _keys: int) -> None:
        return None

    def started(self, *_: Any, **__: Any) -> None:
        return None

    def finished(self, _key: Key, *, seconds: float, outcome: Outcome) -> None:
        self.seen.append((outcome, round(seconds, 3)))

    def retried(self, *_: Any, **__: Any) -> None:
        return None


class Runs:
    """A reconcile that notes when it ran, and answers by a script."""

    def __init__(self, *script: Result | Exception, seconds: float = 1.0) -> None:
        self.script = list(script)
        self.seconds = seconds
        self.times: list[float] = []
        self.running: Counter[Key] = Counter()
        self.most_of_one_key = 0
        self.most = 0

    async def __call__(self, key: Key) -> Result:
        self.times.append(round(virtual_now(), 3))
        self.running[key] += 1
        self.most_of_one_key = max(self.most_of_one_key, self.running[key])
        self.most = max(self.most, self.running.total())
        await asyncio.sleep(self.seconds)
        self.running[key] -= 1
        answer = self.script.pop(0) if self.script else Result()
        if isinstance(answer, Exception):
            raise answer
        return answer


def play(
    reconcile: Callable[[Key], Awaitable[Result]],
    steps: Callable[[WorkQueue], Coroutine[Any, Any, None]],
    *,
    workers: int = 2,
    observer: Outcomes | None = None,
) -> None:
    async def main() -> None:
        queue = WorkQueue(
            clock=virtual_now, jitter=lambda: 0.0, backoff=Backoff(initial=1, maximum=60), observer=observer
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(run_workers(queue, reconcile, workers=workers))
            await steps(queue)
            await queue.shut_down()

    run_in_virtual_time(main())


def test_many_events_of_one_key_are_few_runs_and_never_two_at_once() -> None:
    runs = Runs()

    async def steps(queue: WorkQueue) -> None:
        for _ in range(11):
            queue.add(A)
            await asyncio.sleep(0.1)
        await asyncio.sleep(10)

    play(runs, steps, workers=4)
    assert (len(runs.times) <= 3, runs.most_of_one_key) == (True, 1)


def test_keys_run_beside_each_other_up_to_the_number_of_workers() -> None:
    runs = Runs()

    async def steps(queue: WorkQueue) -> None:
        for key in KEYS:
            queue.add(key)
        await asyncio.sleep(10)

    play(runs, steps, workers=3)
    assert (runs.most, len(runs.times)) == (3, 5)


async def added_once(queue: WorkQueue) -> None:
    queue.add(A)
    await asyncio.sleep(100)


def test_a_failing_key_returns_with_growing_delays_until_it_succeeds() -> None:
    runs = Runs(RuntimeError("1"), RuntimeError("2"), ServerUnavailable(status=503), seconds=0.0)
    play(runs, added_once)
    assert runs.times == [0.0, 1.0, 3.0, 7.0]


def test_a_conflict_returns_soon_however_often_it_comes() -> None:
    runs = Runs(*[Conflict(status=409)] * 5, seconds=0.0)
    play(runs, added_once)
    assert runs.times == [0.0, 1.0, 3.0, 5.0, 7.0, 9.0]


def test_a_failing_key_does_not_stop_others() -> None:
    runs = Runs(RuntimeError("1"))

    async def steps(queue: WorkQueue) -> None:
        queue.add(A)
        queue.add(KEYS[1])
        await asyncio.sleep(1.5)

    play(runs, steps, workers=1)
    assert len(runs.times) == 2


def test_a_result_brings_the_key_back_when_it_says() -> None:
    runs = Runs(Result(requeue_after=30), seconds=0.0)
    play(runs, added_once)
    assert runs.times == [0.0, 30.0]


def test_a_failure_is_logged_with_its_key(caplog: pytest.LogCaptureFixture) -> None:
    play(Runs(RuntimeError("broken")), added_once)
    record: Any = next(each for each in caplog.records if each.levelno == logging.ERROR)
    assert (record.kind, record.namespace, record.object) == ("SpeculativeModel", "ns", "m0")


def test_a_conflict_is_everyday_and_logged_without_a_stack_trace(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="specdec_operator")
    play(Runs(Conflict(status=409)), added_once)
    assert [(each.levelname, each.exc_info) for each in caplog.records] == [("INFO", None)]


def test_an_outage_is_a_warning_without_a_stack_trace(caplog: pytest.LogCaptureFixture) -> None:
    play(Runs(ServerUnavailable(status=503)), added_once)
    assert [(each.levelname, each.exc_info) for each in caplog.records] == [("WARNING", None)]


def test_the_observer_hears_how_runs_ended() -> None:
    outcomes = Outcomes()
    play(Runs(RuntimeError("1"), Result(requeue_after=5), seconds=0.5), added_once, observer=outcomes)
    assert outcomes.seen == [("error", 0.5), ("requeue_after", 0.5), ("success", 0.5)]


def test_a_shutdown_lets_runs_finish() -> None:
    outcomes = Outcomes()

    async def steps(queue: WorkQueue) -> None:
        queue.add(A)
        await asyncio.sleep(0.1)

    play(Runs(seconds=5.0), steps, observer=outcomes)
    assert outcomes.seen == [("success", 5.0)]


def test_cancelling_the_workers_stops_runs_where_they_are() -> None:
    runs = Runs(seconds=1000.0)

    async def main() -> float:
        queue = WorkQueue(clock=virtual_now)
        working = asyncio.create_task(run_workers(queue, runs, workers=2))
        queue.add(A)
        await asyncio.sleep(1)
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working
        await queue.shut_down()
        return virtual_now()

    assert run_in_virtual_time(main()) == pytest.approx(1)

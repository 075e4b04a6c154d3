from __future__ import annotations

import asyncio
from typing import Any

import pytest

from specdec_operator.reconcile.queue import Backoff, Key, QueueShutDown
from tests.unit.reconcile.queue_play import A, B, next_key, play, queue
from tests.virtual_time import virtual_now


class Notes:
    """An observer that remembers."""

    def __init__(self) -> None:
        self.depths: list[int] = []
        self.waits: list[float] = []
        self.delays: list[float] = []

    def depth(self, keys: int) -> None:
        self.depths.append(keys)

    def started(self, _key: Key, *, waited: float) -> None:
        self.waits.append(waited)

    def finished(self, *_: Any, **__: Any) -> None:
        return None

    def retried(self, _key: Key, *, delay: float) -> None:
        self.delays.append(delay)


def test_keys_come_in_the_order_in_which_they_were_added() -> None:
    async def scenario() -> None:
        work = queue()
        work.add(A)
        work.add(B)
        assert [await work.get(), await work.get()] == [A, B]

    play(scenario)


def test_a_key_added_many_times_comes_once() -> None:
    async def scenario() -> None:
        work = queue()
        for _ in range(10):
            work.add(A)
        await work.get()
        assert work.depth == 0

    play(scenario)


def test_a_key_that_runs_is_not_given_out_again() -> None:
    async def scenario() -> None:
        work = queue()
        work.add(A)
        await work.get()
        work.add(A)
        assert await next_key(work, within=60) is None

    play(scenario)


def test_a_key_added_while_it_runs_comes_again_afterwards() -> None:
    async def scenario() -> None:
        work = queue()
        work.add(A)
        await work.get()
        work.add(A)
        work.done(A)
        assert await next_key(work, within=1) == A

    play(scenario)


def test_a_key_not_added_while_it_ran_does_not_come_again() -> None:
    async def scenario() -> None:
        work = queue()
        work.add(A)
        work.done(await work.get())
        assert await next_key(work, within=60) is None

    play(scenario)


def test_a_waiting_worker_is_woken() -> None:
    async def scenario() -> None:
        work = queue()
        getting = asyncio.create_task(work.get())
        await asyncio.sleep(1)
        work.add(A)
        assert await getting == A

    play(scenario)


def test_two_waiting_workers_get_two_keys() -> None:
    async def scenario() -> None:
        work = queue()
        getting = [asyncio.create_task(work.get()) for _ in range(2)]
        await asyncio.sleep(1)
        work.add(A)
        work.add(B)
        assert set(await asyncio.gather(*getting)) == {A, B}

    play(scenario)


def test_a_delayed_key_comes_after_its_delay() -> None:
    async def scenario() -> None:
        work = queue()
        work.add_after(A, 30)
        await work.get()
        assert virtual_now() == pytest.approx(30)

    play(scenario)


@pytest.mark.parametrize("delays", [(30, 10), (10, 30)])
def test_of_two_delays_the_earlier_counts(delays: tuple[float, float]) -> None:
    async def scenario() -> None:
        work = queue()
        for delay in delays:
            work.add_after(A, delay)
        await work.get()
        work.done(A)
        first = round(virtual_now(), 3)
        assert (first, await next_key(work, within=60)) == (10.0, None)

    play(scenario)


def test_a_run_takes_the_place_of_the_delay_that_was_set_before_it() -> None:
    async def scenario() -> None:
        work = queue()
        work.add_after(A, 30)
        work.add(A)
        work.done(await work.get())
        assert await next_key(work, within=60) is None

    play(scenario)


def test_a_delay_set_during_a_run_stays() -> None:
    async def scenario() -> None:
        work = queue()
        work.add(A)
        await work.get()
        work.add_after(A, 30)
        work.done(A)
        assert await next_key(work, within=60) == A

    play(scenario)


def test_a_delay_of_zero_is_now() -> None:
    async def scenario() -> None:
        work = queue()
        work.add_after(A, 0)
        assert work.depth == 1

    play(scenario)


def test_failures_in_a_row_wait_longer_up_to_a_maximum() -> None:
    async def scenario() -> None:
        work = queue(backoff=Backoff(initial=1, maximum=10))
        assert [work.retry(A) for _ in range(6)] == [1, 2, 4, 8, 10, 10]

    play(scenario)


def test_success_resets_the_backoff() -> None:
    async def scenario() -> None:
        work = queue(backoff=Backoff(initial=1, maximum=10))
        work.retry(A)
        work.retry(A)
        work.forget(A)
        assert work.retry(A) == 1

    play(scenario)


def test_the_failures_of_one_key_do_not_delay_another() -> None:
    async def scenario() -> None:
        work = queue(backoff=Backoff(initial=1, maximum=10))
        work.retry(A)
        assert work.retry(B) == 1

    play(scenario)


def test_keys_that_failed_together_return_apart() -> None:
    async def scenario() -> None:
        shares = iter([0.0, 1.0])
        work = queue(backoff=Backoff(initial=8, maximum=10, spread=0.5), jitter=lambda: next(shares))
        assert (work.retry(A), work.retry(B)) == (8, 4)

    play(scenario)


def test_a_thousand_failures_still_give_a_delay() -> None:
    assert Backoff(maximum=300, spread=0).delay(failures=5000, random_share=0) == 300


def test_a_shut_down_queue_sends_workers_home() -> None:
    async def scenario() -> None:
        work = queue()
        getting = asyncio.create_task(work.get())
        await asyncio.sleep(1)
        await work.shut_down()
        with pytest.raises(QueueShutDown):
            await getting

    play(scenario)


def test_a_shut_down_queue_takes_no_keys() -> None:
    async def scenario() -> None:
        work = queue()
        await work.shut_down()
        work.add(A)
        work.add_after(B, 1)
        await asyncio.sleep(2)
        assert work.depth == 0

    play(scenario)


def test_shutting_down_drops_what_waits() -> None:
    async def scenario() -> None:
        work = queue()
        work.add(A)
        await work.shut_down()
        with pytest.raises(QueueShutDown):
            await work.get()

    play(scenario)


def test_shutting_down_waits_for_what_runs() -> None:
    async def scenario() -> None:
        work = queue()
        work.add(A)
        await work.get()
        asyncio.get_running_loop().call_later(5, work.done, A)
        await work.shut_down()
        assert virtual_now() == pytest.approx(5)

    play(scenario)


def test_draining_runs_what_waits_and_what_was_added_during_a_run() -> None:
    async def scenario() -> None:
        work = queue()
        work.add(A)
        work.add(B)
        await work.get()
        work.add(A)
        draining = asyncio.create_task(work.shut_down(drain=True))
        await asyncio.sleep(1)
        work.done(A)
        rest = [await work.get(), await work.get()]
        for key in rest:
            work.done(key)
        await draining
        assert rest == [B, A]

    play(scenario)


def test_the_observer_hears_how_long_a_key_waited() -> None:
    async def scenario() -> None:
        notes = Notes()
        work = queue(observer=notes)
        work.add(A)
        await asyncio.sleep(3)
        await work.get()
        assert notes.waits == [pytest.approx(3)]

    play(scenario)


def test_the_observer_hears_the_depth() -> None:
    async def scenario() -> None:
        notes = Notes()
        work = queue(observer=notes)
        work.add(A)
        work.add(B)
        await work.get()
        assert notes.depths == [1, 2, 1]

    play(scenario)


def test_the_observer_hears_of_retries() -> None:
    async def scenario() -> None:
        notes = Notes()
        work = queue(observer=notes, backoff=Backoff(initial=1))
        work.retry(A)
        assert notes.delays == [1]

    play(scenario)


def test_a_queue_stalls_while_keys_wait_and_nobody_works() -> None:
    async def scenario() -> None:
        work = queue()
        await asyncio.sleep(3)
        idle = work.stalled
        work.add(A)
        await asyncio.sleep(7)
        assert (idle, round(work.stalled, 3)) == (0.0, 7.0)

    play(scenario)


def test_a_long_backlog_that_is_worked_off_is_no_stall() -> None:
    async def scenario() -> None:
        work = queue()
        work.add(A)
        for number in range(100):
            work.add(Key("SpeculativeModel", "ns", f"m{number}"))
        for _ in range(60):
            key = await work.get()
            await asyncio.sleep(10)
            work.done(key)
        assert (work.depth, work.stalled) == (41, 0.0)

    play(scenario)


def test_a_queue_whose_workers_all_hang_stalls() -> None:
    async def scenario() -> None:
        work = queue()
        work.add(A)
        work.add(B)
        await work.get()
        await asyncio.sleep(400)
        assert round(work.stalled) == 400

    play(scenario)

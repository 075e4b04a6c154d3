"""A key rests after its run, so that one run sees what a burst of changes led to."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.reconcile.queue_play import A, B, next_key, play, queue
from tests.virtual_time import virtual_now


def test_a_key_rests_after_its_run() -> None:
    async def scenario() -> None:
        work = queue(rest=3)
        work.add(A)
        work.done(await work.get())
        work.add(A)
        await work.get()
        assert virtual_now() == pytest.approx(3)

    play(scenario)


def test_a_key_added_while_it_runs_rests_first() -> None:
    async def scenario() -> None:
        work = queue(rest=3)
        work.add(A)
        await work.get()
        work.add(A)
        await asyncio.sleep(1)
        work.done(A)
        await work.get()
        assert virtual_now() == pytest.approx(4)

    play(scenario)


def test_what_is_added_during_a_rest_is_one_run() -> None:
    async def scenario() -> None:
        work = queue(rest=3)
        work.add(A)
        work.done(await work.get())
        for _ in range(10):
            work.add(A)
        work.done(await work.get())
        assert await next_key(work, within=60) is None

    play(scenario)


def test_a_key_that_has_rested_runs_at_once() -> None:
    async def scenario() -> None:
        work = queue(rest=3)
        work.add(A)
        work.done(await work.get())
        await asyncio.sleep(4)
        work.add(A)
        await work.get()
        assert virtual_now() == pytest.approx(4)

    play(scenario)


def test_the_rest_of_one_key_does_not_delay_another() -> None:
    async def scenario() -> None:
        work = queue(rest=3)
        work.add(A)
        work.done(await work.get())
        work.add(B)
        await work.get()
        assert virtual_now() == pytest.approx(0)

    play(scenario)


def test_draining_waits_for_no_rest() -> None:
    async def scenario() -> None:
        work = queue(rest=3)
        work.add(A)
        work.done(await work.get())
        work.add(A)
        draining = asyncio.create_task(work.shut_down(drain=True))
        await asyncio.sleep(1)
        work.done(await work.get())
        await draining
        assert virtual_now() == pytest.approx(1)

    play(scenario)


def test_shutting_down_waits_for_no_rest() -> None:
    async def scenario() -> None:
        work = queue(rest=3)
        work.add(A)
        work.done(await work.get())
        work.add(A)
        await work.shut_down()
        assert virtual_now() == pytest.approx(0)

    play(scenario)

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from specdec_operator.cluster.errors import (
    Forbidden,
    LeadershipLost,
)
from specdec_operator.cluster.lease import LeaseElector, LeaseSettings
from tests.unit.cluster.lease_play import LeaseClient, LeaseServer, Process, scenario
from tests.virtual_time import virtual_now


def test_the_first_to_come_leads() -> None:
    async def play(server: LeaseServer) -> None:
        process = Process(server, "a")
        await process.leads.wait()
        assert (server.holder(), process.elector.is_leader, process.elector.may_write()) == ("a", True, True)

    scenario(play)


def test_nobody_writes_before_it_leads() -> None:
    async def play(server: LeaseServer) -> None:
        assert Process(server, "a").elector.may_write() is False

    scenario(play)


def test_of_many_at_once_one_leads() -> None:
    async def play(server: LeaseServer) -> None:
        processes = [Process(server, name) for name in "abcde"]
        await asyncio.sleep(60)
        assert sum(process.leads.is_set() for process in processes) == 1

    scenario(play)


def test_a_leader_renews_every_retry_period() -> None:
    async def play(server: LeaseServer) -> None:
        Process(server, "a")
        await asyncio.sleep(21)
        assert len(server.writes) in {10, 11}

    scenario(play)


def test_a_crashed_leader_is_replaced_after_the_leases_duration() -> None:
    async def play(server: LeaseServer) -> None:
        first = Process(server, "a")
        await first.leads.wait()
        second = Process(server, "b")
        await asyncio.sleep(7)
        await first.crash()
        last_renewal = server.writes[-1][0]
        await second.leads.wait()
        # It sees the last renewal up to one retry period late, and the end of the Lease up to another.
        assert 15 <= virtual_now() - last_renewal < 15 + 2 * 2.1

    scenario(play)


def test_a_leader_that_is_cut_off_stops_writing_before_another_leads() -> None:
    async def play(server: LeaseServer) -> None:
        first, second = Process(server, "a"), Process(server, "b")
        leader, other = (first, second) if await leads_first(first, second) else (second, first)
        leader.client.cut = True
        overlaps = []
        while not other.leads.is_set():
            overlaps.append(leader.elector.may_write() and other.elector.may_write())
            await asyncio.sleep(0.05)
        assert (any(overlaps), leader.elector.may_write()) == (False, False)

    async def leads_first(first: Process, second: Process) -> bool:
        waits = [asyncio.create_task(process.leads.wait()) for process in (first, second)]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        return first.leads.is_set()

    scenario(play)


@pytest.mark.parametrize("failure", ["cut", "hangs"])
def test_a_leader_without_renewal_stops_at_the_renew_deadline(failure: str) -> None:
    async def play(server: LeaseServer) -> None:
        process = Process(server, "a")
        await process.leads.wait()
        await asyncio.sleep(5)
        last_renewal = server.writes[-1][0]
        setattr(process.client, failure, True)
        with pytest.raises(LeadershipLost):
            await process.task
        assert (process.cancelled, virtual_now() - last_renewal < 10.5) == (True, True)

    scenario(play)


def test_writes_are_fenced_at_the_deadline_even_while_the_renewal_hangs() -> None:
    async def play(server: LeaseServer) -> None:
        process = Process(server, "a")
        await process.leads.wait()
        process.client.hangs = True
        await asyncio.sleep(9.9)
        before = process.elector.may_write()
        await asyncio.sleep(0.2)
        assert (before, process.elector.may_write()) == (True, False)

    scenario(play)


def test_a_short_outage_costs_no_leadership() -> None:
    async def play(server: LeaseServer) -> None:
        process = Process(server, "a")
        await process.leads.wait()
        process.client.cut = True
        await asyncio.sleep(6)
        process.client.cut = False
        await asyncio.sleep(60)
        assert process.elector.may_write()

    scenario(play)


def test_a_leader_whose_lease_was_taken_stops_at_its_next_renewal() -> None:
    async def play(server: LeaseServer) -> None:
        process = Process(server, "a")
        await process.leads.wait()
        assert server.lease is not None
        server.stored({**server.lease, "spec": {"holderIdentity": "thief", "leaseDurationSeconds": 15}})
        taken_at = virtual_now()
        with pytest.raises(LeadershipLost):
            await process.task
        assert virtual_now() - taken_at < 2.5

    scenario(play)


def test_the_lease_is_released_when_the_work_ends() -> None:
    async def play(server: LeaseServer) -> None:
        first = Process(server, "a")
        await first.leads.wait()
        second = Process(server, "b")
        await asyncio.sleep(3)
        first.stop.set()
        await first.task
        released_at = virtual_now()
        await second.leads.wait()
        assert virtual_now() - released_at < 2.1

    scenario(play)


def test_the_lease_is_released_when_the_process_is_cancelled() -> None:
    async def play(server: LeaseServer) -> None:
        process = Process(server, "a")
        await process.leads.wait()
        process.task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await process.task
        assert (server.holder(), process.elector.may_write()) == ("", False)

    scenario(play)


def test_a_release_does_not_touch_the_lease_of_another() -> None:
    async def play(server: LeaseServer) -> None:
        process = Process(server, "a")
        await process.leads.wait()
        assert server.lease is not None
        server.stored({**server.lease, "spec": {"holderIdentity": "thief", "leaseDurationSeconds": 15}})
        process.stop.set()
        await process.task
        assert server.holder() == "thief"

    scenario(play)


def test_a_failure_of_the_work_ends_the_leadership() -> None:
    async def play(server: LeaseServer) -> None:
        async def fail() -> None:
            raise RuntimeError("broken")

        client: Any = LeaseClient(server)
        elector = LeaseElector(client, LeaseSettings("a", "operator", "a"), clock=virtual_now)
        with pytest.raises(RuntimeError, match="broken"):
            await elector.run(fail)
        assert server.holder() == ""

    scenario(play)


def test_a_missing_right_is_not_waited_out() -> None:
    async def play(server: LeaseServer) -> None:
        process = Process(server, "a")
        process.client.refused = True
        with pytest.raises(Forbidden):
            await process.task

    scenario(play)


def test_taking_over_counts_a_transition_and_renewing_does_not() -> None:
    async def play(server: LeaseServer) -> None:
        first = Process(server, "a")
        await first.leads.wait()
        await asyncio.sleep(10)
        first.stop.set()
        await first.task
        await Process(server, "b").leads.wait()
        assert server.lease is not None
        assert server.lease["spec"]["leaseTransitions"] == 1

    scenario(play)


def test_metrics_hear_of_the_leadership_and_its_end() -> None:
    async def play(server: LeaseServer) -> None:
        process = Process(server, "a")
        await process.leads.wait()
        process.stop.set()
        await process.task
        assert [leading for _, leading in process.seen] == [True, False]

    scenario(play)


def test_times_that_do_not_shrink_are_refused() -> None:
    with pytest.raises(ValueError, match="must shrink"):
        LeaseSettings("a", "b", "c", duration=10, renew_deadline=10)

"""What becomes of a leader whose renewals are answered, but refused."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

import pytest

from specdec_operator.cluster.errors import (
    ApiError,
    BadRequest,
    ClusterError,
    CredentialsError,
    Expired,
    Forbidden,
    Invalid,
    LeadershipLost,
    NotFound,
    TooManyRequests,
)
from tests.unit.cluster.lease_play import LeaseServer, Process, scenario
from tests.virtual_time import virtual_now

if TYPE_CHECKING:
    from collections.abc import Callable

REFUSALS: dict[str, Callable[[], ClusterError]] = {
    "429": partial(TooManyRequests, status=429),
    "404": partial(NotFound, status=404),
    "403": partial(Forbidden, status=403),
    "422": partial(Invalid, status=422),
    "400": partial(BadRequest, status=400),
    "410": partial(Expired, status=410),
    "418": partial(ApiError, status=418),
    "401": partial(CredentialsError, "the token is being replaced"),
}


@pytest.mark.parametrize("answer", REFUSALS)
def test_a_leader_whose_renewals_are_refused_for_a_while_goes_on(answer: str) -> None:
    async def play(server: LeaseServer) -> None:
        process = Process(server, "a")
        await process.leads.wait()
        process.client.refused_writes = REFUSALS[answer]
        await asyncio.sleep(6)
        process.client.refused_writes = None
        await asyncio.sleep(60)
        assert process.elector.may_write()

    scenario(play)


@pytest.mark.parametrize("answer", REFUSALS)
def test_a_leader_whose_renewals_stay_refused_ends_at_the_deadline(answer: str) -> None:
    async def play(server: LeaseServer) -> None:
        process = Process(server, "a")
        await process.leads.wait()
        last_renewal = virtual_now()
        process.client.refused_writes = REFUSALS[answer]
        with pytest.raises(LeadershipLost):
            await process.task
        assert 9 < virtual_now() - last_renewal < 12.5

    scenario(play)


@pytest.mark.parametrize("answer", ["429", "404"])
def test_a_process_whose_first_write_of_the_lease_is_put_off_leads_later(answer: str) -> None:
    async def play(server: LeaseServer) -> None:
        process = Process(server, "a")
        process.client.refused_writes = REFUSALS[answer]
        await asyncio.sleep(30)
        process.client.refused_writes = None
        async with asyncio.timeout(10):
            await process.leads.wait()

    scenario(play)


def test_a_leader_whose_lease_was_deleted_makes_it_again() -> None:
    async def play(server: LeaseServer) -> None:
        process = Process(server, "a")
        await process.leads.wait()
        server.lease = None
        await asyncio.sleep(30)
        assert (server.holder(), process.elector.may_write()) == ("a", True)

    scenario(play)

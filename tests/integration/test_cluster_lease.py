"""Leader election on a real Lease."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import pytest

from specdec_operator.cluster.errors import LeadershipLost, ServerUnavailable, WritesFenced
from specdec_operator.cluster.http import HttpKubernetesApi
from specdec_operator.cluster.kubeconfig import kubeconfig_credentials
from specdec_operator.cluster.lease import LeaseElector, LeaseSettings
from specdec_operator.cluster.login import open_session
from specdec_operator.cluster.resources import CONFIG_MAPS, LEASES
from tests.integration.cluster_api import Workplace, workplace

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from testbed.cluster import Cluster

pytestmark = pytest.mark.controlplane

QUICK = {"duration": 3.0, "renew_deadline": 1.5, "retry_period": 0.2}


@pytest.fixture
async def place(cluster: Cluster) -> AsyncIterator[Workplace]:
    async with workplace(cluster) as made:
        yield made


def settings(place: Workplace, identity: str) -> LeaseSettings:
    return LeaseSettings(place.namespace, "operator", identity, **QUICK)


class Candidate:
    """One process that wants to lead."""

    def __init__(self, api: HttpKubernetesApi, lease: LeaseSettings) -> None:
        self.elector = LeaseElector(api, lease, jitter=lambda: 0.0)
        self.leads = asyncio.Event()
        self.stop = asyncio.Event()
        self.task = asyncio.create_task(self.elector.run(self._lead))

    async def _lead(self) -> None:
        self.leads.set()
        await self.stop.wait()

    async def kill(self) -> None:
        """End without the chance to release the Lease."""
        self.elector._renewed_at = None
        await self.end()

    async def end(self) -> None:
        self.task.cancel()
        with contextlib.suppress(asyncio.CancelledError, LeadershipLost):
            await self.task


@contextlib.asynccontextmanager
async def candidate(place: Workplace, identity: str, api: HttpKubernetesApi | None = None) -> AsyncIterator[Candidate]:
    made = Candidate(api or place.api, settings(place, identity))
    try:
        yield made
    finally:
        await made.end()


async def holder(place: Workplace) -> str:
    lease = await place.api.get(LEASES, namespace=place.namespace, name="operator")
    return str(lease["spec"].get("holderIdentity", ""))


async def test_of_two_candidates_one_leads(place: Workplace) -> None:
    async with candidate(place, "a") as first, candidate(place, "b") as second:
        await asyncio.sleep(0.8)
        assert first.elector.may_write() != second.elector.may_write()


async def test_a_released_lease_is_taken_at_once(place: Workplace) -> None:
    async with candidate(place, "a") as first:
        await asyncio.wait_for(first.leads.wait(), 2)
        async with candidate(place, "b") as second:
            first.stop.set()
            # Sooner than the Lease's duration.
            await asyncio.wait_for(second.leads.wait(), 1.5)
            assert await holder(place) == "b"


async def test_a_killed_holder_is_replaced_after_its_lease_ends(place: Workplace) -> None:
    async with candidate(place, "a") as first:
        await asyncio.wait_for(first.leads.wait(), 2)
        await first.kill()
        async with candidate(place, "b") as second:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(second.leads.wait(), 2)
            too_early = second.leads.is_set()
            await asyncio.wait_for(second.leads.wait(), 3)
            assert (too_early, await holder(place)) == (False, "b")


class CutOff(HttpKubernetesApi):
    """A client whose network can fail."""

    broken = False

    async def get(self, *arguments: object, **named: object) -> dict[str, object]:
        if self.broken:
            raise ServerUnavailable(status=0, message="no route")
        return await super().get(*arguments, **named)  # type: ignore[arg-type] # passed through as given


async def test_a_holder_that_is_cut_off_stops_writing_before_another_leads(cluster: Cluster, place: Workplace) -> None:
    credentials = kubeconfig_credentials(cluster.kubeconfig)
    async with open_session(credentials) as session:
        network = CutOff(session, credentials.server)
        async with candidate(place, "a", network) as first:
            await asyncio.wait_for(first.leads.wait(), 2)
            async with candidate(place, "b") as second:
                network.broken = True
                await asyncio.wait({first.task}, timeout=3)
                lost = isinstance(first.task.exception(), LeadershipLost)
                assert (lost, first.elector.may_write(), second.leads.is_set()) == (True, False, False)


async def test_a_fenced_client_starts_no_write(cluster: Cluster, place: Workplace) -> None:
    elector = LeaseElector(place.api, settings(place, "a"))
    async with workplace(cluster, may_write=elector.may_write) as fenced:
        body = fenced.body(CONFIG_MAPS, "written", data={})
        with pytest.raises(WritesFenced):
            await fenced.api.create(CONFIG_MAPS, body)


async def test_a_lease_that_somebody_else_made_free_is_taken(place: Workplace) -> None:
    metadata = {"namespace": place.namespace, "name": "operator"}
    body = {"apiVersion": LEASES.api_version, "kind": "Lease", "metadata": metadata, "spec": {}}
    await place.stranger.create(LEASES, body)
    async with candidate(place, "a") as first:
        await asyncio.wait_for(first.leads.wait(), 2)
        assert await holder(place) == "a"

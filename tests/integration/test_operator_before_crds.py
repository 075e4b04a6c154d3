"""An operator that comes before its CRDs says so, and works once they are there."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import aiohttp
import pytest

from testbed.operator.in_process import InProcessOperator
from testbed.operator.install import CRDS, install, operator_kubeconfig
from tests.integration.scene import baseline, configuration, stage

if TYPE_CHECKING:
    from testbed.cluster import Cluster
    from tests.integration.conftest import Ledger

pytestmark = [pytest.mark.controlplane, pytest.mark.asyncio]

SECONDS = 30.0


@pytest.fixture
def bare_cluster(cluster: Cluster) -> Cluster:
    """The cluster with the operator's rights, and without its CRDs."""
    cluster.kubectl("delete", "--wait=true", f"--filename={CRDS}")
    return cluster


async def test_an_operator_that_starts_before_its_crds_is_not_ready_until_they_come(
    bare_cluster: Cluster, ledger: Ledger
) -> None:
    async with stage(bare_cluster) as made:
        operator = InProcessOperator(configuration(), operator_kubeconfig(bare_cluster), made.prover)
        starting = asyncio.create_task(operator.start())
        try:
            said = await until_said(operator, "does not serve")
            assert f"kubectl apply --server-side -f {CRDS.name}/" in said
            install(bare_cluster)
            await starting
            scene = await made.scene("before-crds")
            await scene.apply("base", baseline())
            await scene.until_ready("base")
            # The first operator of a cluster makes the Lease that those after it take over.
            ledger.requests[__name__] = await operator.requests()
        finally:
            starting.cancel()
            await operator.stop()


async def until_said(operator: InProcessOperator, part: str) -> str:
    """Wait until /readyz refuses with words that hold a part; return them."""
    async with asyncio.timeout(SECONDS):
        while True:
            try:
                async with aiohttp.ClientSession() as session, session.get(f"{operator.url}/readyz") as response:
                    text = await response.text()
                    if response.status == 503 and part in text:
                        return text
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.2)

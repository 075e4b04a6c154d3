"""The real control plane under the integration tests."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from testbed.cluster import Cluster, ClusterOptions, KwokNodes, TerminalProgress, running_cluster
from testbed.cluster.binaries import Builder
from testbed.cluster.cache import cache_directory
from testbed.cluster.processes import processes_of
from testbed.cluster.tools import CONTROL_PLANE, NODE
from testbed.operator import install, operator_in_process
from tests.integration.scene import Stage, configuration, stage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from testbed.cluster import Progress
    from testbed.operator.metrics import Requests


@dataclass
class Ledger:
    """What the operators of this session asked of the API server.

    Attributes:
        requests: by module.
    """

    requests: dict[str, Requests] = field(default_factory=dict)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build what the chosen tests need before the first one's timeout runs."""
    chosen = {marker.name for item in session.items for marker in item.iter_markers()}
    tools = [
        *(CONTROL_PLANE if chosen & {"controlplane", "realnode"} else ()),
        *(NODE if "realnode" in chosen and os.geteuid() == 0 else ()),
    ]
    if not session.config.option.collectonly:
        builder = Builder(cache=cache_directory(), environment=os.environ, progress=TerminalProgress(sys.stderr))
        builder.ensure(tools)


@contextlib.contextmanager
def _operator_cluster(progress: Progress) -> Iterator[Cluster]:
    nodes = KwokNodes(count=24, gpus=8, product="NVIDIA-H100-80GB-HBM3")
    with running_cluster(ClusterOptions(kwok_nodes=nodes), progress=progress) as running:
        install(running)
        yield running
    assert not processes_of(running.directory), "a process of the cluster is left"
    assert not running.directory.exists(), "the cluster's folder is left"


@pytest.fixture(scope="session")
def operator_cluster(lane_end: contextlib.ExitStack, progress: Progress) -> Cluster:
    """The lane's cluster: kwok's nodes, the operator's CRDs and its rights. Each module runs its own operator."""
    return lane_end.enter_context(_operator_cluster(progress))


@pytest.fixture(scope="session")
def cluster(operator_cluster: Cluster) -> Cluster:
    """The same for modules without an operator: none runs meanwhile, and no model of theirs must stay."""
    return operator_cluster


@pytest.fixture(scope="session")
def served(cluster: Cluster) -> Cluster:
    """The same, once the API server serves the CRDs to everybody who asks what it serves."""
    deadline = time.monotonic() + 30
    while "speculativemodels" not in cluster.kubectl("api-resources", "--api-group=specdec.dev", "--output=name"):
        assert time.monotonic() < deadline, "the API server does not serve the custom resources"
        time.sleep(0.2)
    return cluster


@pytest.fixture(scope="session")
def ledger() -> Ledger:
    return Ledger()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def operated(operator_cluster: Cluster, ledger: Ledger, request: pytest.FixtureRequest) -> AsyncIterator[Stage]:
    """A stage with one operator over all namespaces, of the module's CONFIGURATION if it has one."""
    wanted = getattr(request.module, "CONFIGURATION", configuration())
    async with (
        stage(operator_cluster) as made,
        operator_in_process(operator_cluster, wanted, prover=made.prover) as operator,
    ):
        made.operator = operator
        yield made
        ledger.requests[request.module.__name__] = await operator.requests()

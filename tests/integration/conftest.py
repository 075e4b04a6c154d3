"""The real control plane under the integration tests."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from testbed.cluster import Cluster, ClusterOptions, KwokNodes, TerminalProgress, running_cluster
from testbed.cluster.binaries import Builder
from testbed.cluster.cache import cache_directory
from testbed.cluster.tools import CONTROL_PLANE, NODE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from testbed.cluster import Progress


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


@pytest.fixture(scope="session")
def progress() -> Iterator[Progress]:
    # pytest captures file descriptor 2 while tests and fixtures run; its duplicate speaks to the terminal.
    with os.fdopen(os.dup(sys.__stderr__.fileno() if sys.__stderr__ else 2), "w") as stream:
        yield TerminalProgress(stream)


@pytest.fixture(scope="session")
def cluster(progress: Progress) -> Iterator[Cluster]:
    nodes = KwokNodes(count=2, gpus=8, product="NVIDIA-H100-80GB-HBM3")
    with running_cluster(ClusterOptions(kwok_nodes=nodes), progress=progress) as running:
        yield running

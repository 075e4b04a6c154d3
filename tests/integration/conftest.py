"""The real control plane under the integration tests."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from testbed.cluster import Cluster, ClusterOptions, KwokNodes, TerminalProgress, running_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from testbed.cluster import Progress


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

"""Reading the labels of GPU nodes."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

from specdec_operator.cluster.errors import Forbidden
from specdec_operator.cluster.resources import NODES
from specdec_operator.reconcile.gpu_nodes import GpuNodes

if TYPE_CHECKING:
    import pytest

    from specdec_operator.cluster.api import KubernetesApi

LABELS = {"nvidia.com/gpu.product": "NVIDIA-L4", "nvidia.com/cuda.driver-version.full": "580.95.05"}


@dataclass
class Cluster:
    """Nodes, and the time."""

    labels: list[dict[str, str] | None] = field(default_factory=lambda: [LABELS])
    is_forbidden: bool = False
    asked: list[dict[str, Any]] = field(default_factory=list)
    time: datetime = datetime(2026, 1, 1, tzinfo=UTC)

    async def list(self, resource: Any, **asked: Any) -> list[dict[str, Any]]:
        assert resource == NODES
        self.asked.append(asked)
        await asyncio.sleep(0)
        if self.is_forbidden:
            raise Forbidden(status=403, message="nodes is forbidden")
        return [{"metadata": {"name": "n", **({"labels": found} if found else {})}} for found in self.labels]

    def nodes(self, *, enabled: bool = True) -> GpuNodes:
        return GpuNodes(api=cast("KubernetesApi", self), enabled=enabled, now=lambda: self.time)


async def test_the_metadata_of_gpu_nodes_alone_is_asked_for() -> None:
    cluster = Cluster(labels=[LABELS, None])

    assert await cluster.nodes().labels() == (LABELS, {})
    assert cluster.asked == [{"label_selector": "nvidia.com/gpu.product", "metadata_only": True}]


async def test_nothing_is_asked_for_where_nodes_are_not_read() -> None:
    cluster = Cluster()

    assert await cluster.nodes(enabled=False).labels() == ()
    assert cluster.asked == []


async def test_nodes_are_read_once_in_some_minutes_whoever_asks() -> None:
    cluster = Cluster()
    nodes = cluster.nodes()
    await asyncio.gather(nodes.labels(), nodes.labels())
    cluster.time += timedelta(minutes=4)
    await nodes.labels()
    assert len(cluster.asked) == 1

    cluster.time += timedelta(minutes=1)
    await nodes.labels()
    assert len(cluster.asked) == 2


async def test_without_the_right_nothing_is_known_and_the_log_says_so(caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster(is_forbidden=True)

    assert await cluster.nodes().labels() == ()
    assert "the labels of GPU nodes can't be read" in caplog.text


async def test_what_was_known_stays_known_when_nodes_can_t_be_read() -> None:
    cluster = Cluster()
    nodes = cluster.nodes()
    await nodes.labels()
    cluster.is_forbidden = True
    cluster.time += timedelta(minutes=5)

    assert await nodes.labels() == (LABELS,)

"""The labels of the GPU nodes, which tell their drivers; read now and then, where the operator may read nodes."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from specdec_operator.cluster.errors import ApiError
from specdec_operator.cluster.resources import NODES
from specdec_operator.planning.pods import GPU_PRODUCT_LABEL

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from specdec_operator.cluster.api import KubernetesApi
    from specdec_operator.planning.drivers import NodeLabels

_FRESH: Final = timedelta(minutes=5)
"""Nodes come and go by the minute where they are scaled; a driver is another after a node was restarted."""

_log = logging.getLogger(__name__)


@dataclass(kw_only=True)
class GpuNodes:
    """The labels of the GPU nodes.

    Args:
        enabled: Whether they are read at all.
        now: The wall clock.
    """

    api: KubernetesApi
    enabled: bool
    now: Callable[[], datetime]
    _known: tuple[NodeLabels, ...] = ()
    _read_at: datetime | None = None
    _reading: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def labels(self) -> tuple[NodeLabels, ...]:
        """The labels of each GPU node, no older than some minutes; what was known before if they can't be read."""
        if not self.enabled:
            return ()
        async with self._reading:
            if self._read_at is None or self.now() - self._read_at >= _FRESH:
                self._read_at = self.now()
                await self._read()
            return self._known

    async def _read(self) -> None:
        try:
            nodes = await self.api.list(NODES, label_selector=GPU_PRODUCT_LABEL, metadata_only=True)
        except ApiError as error:
            _log.warning("the labels of GPU nodes can't be read, so their drivers are not known: %s", error)
            return
        self._known = tuple(node["metadata"].get("labels") or {} for node in nodes)

"""The slow resync: every object becomes due now and then, so that lost events and unseen drift are made up for."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Literal

from specdec_operator.cluster.errors import Forbidden
from specdec_operator.cluster.resources import MODEL_ARTIFACTS, SPECULATIVE_MODELS
from specdec_operator.reconcile.queue import Key
from specdec_operator.reconcile.rounds import one_round

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from specdec_operator.cluster.api import KubernetesApi
    from specdec_operator.cluster.resources import ResourceType
    from specdec_operator.reconcile.queue import WorkQueue

_SPREAD = 0.1
_KINDS: tuple[tuple[ResourceType, Literal["SpeculativeModel", "ModelArtifact"]], ...] = (
    (SPECULATIVE_MODELS, "SpeculativeModel"),
    (MODEL_ARTIFACTS, "ModelArtifact"),
)
_log = logging.getLogger(__name__)


class Resync:
    """Adds every object to the queue, again and again.

    Args:
        namespaces: The namespaces looked at; None for all of them.
        period: Seconds between rounds, give or take a tenth.
        jitter: Random numbers from 0 to 1.
    """

    def __init__(
        self,
        api: KubernetesApi,
        queue: WorkQueue,
        *,
        namespaces: Sequence[str | None],
        period: float,
        jitter: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._api = api
        self._queue = queue
        self._namespaces = namespaces
        self._period = period
        self._jitter = jitter
        self._sleep = sleep

    async def run(self) -> None:
        """Go on until cancelled; a round that fails is logged, the next one comes."""
        while True:
            await self._sleep(self._period * (1 + _SPREAD * (2 * self._jitter() - 1)))
            await one_round(self.once, failed="resync failed")

    async def run_when(self, wanted: asyncio.Event) -> None:
        """Make a round each time that it is wanted, until cancelled."""
        while True:
            await wanted.wait()
            wanted.clear()
            await one_round(self.once, failed="resync failed")

    async def once(self) -> None:
        """Add every object now; a namespace that may not be listed keeps back no other."""
        for resource, kind in _KINDS:
            for namespace in self._namespaces:
                try:
                    found = await self._api.list(resource, namespace=namespace)
                except Forbidden as error:
                    _log.warning("resync left out %s: %s", namespace or "everything", error)
                    continue
                for document in found:
                    metadata = document["metadata"]
                    self._queue.add(Key(kind=kind, namespace=metadata["namespace"], name=metadata["name"]))

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import pytest

from specdec_operator.cluster.errors import Forbidden, ServerUnavailable
from specdec_operator.reconcile.queue import WorkQueue
from specdec_operator.reconcile.resync import Resync
from tests.virtual_time import run_in_virtual_time, virtual_now

if TYPE_CHECKING:
    from specdec_operator.cluster.api import KubernetesApi


class Api:
    """Fails once, then lists one object of each kind."""

    def __init__(self, error: Exception) -> None:
        self.errors = [error]

    async def list(self, *_: Any, **__: Any) -> list[Any]:
        if self.errors:
            raise self.errors.pop()
        return [{"metadata": {"namespace": "n", "name": "m"}}]


@pytest.mark.parametrize("error", [ServerUnavailable(status=503), KeyError("metadata")], ids=["outage", "defect"])
def test_a_round_that_fails_is_followed_by_the_next(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> int:
        queue = WorkQueue(clock=virtual_now)
        resync = Resync(cast("KubernetesApi", Api(error)), queue, namespaces=[None], period=10, jitter=lambda: 0.5)
        running = asyncio.create_task(resync.run())
        await asyncio.sleep(25)
        running.cancel()
        return queue.depth

    assert (run_in_virtual_time(main()), "resync failed" in caplog.text) == (2, True)


class Guarded:
    """Shows the objects of all namespaces but one."""

    async def list(self, *_: Any, namespace: str, **__: Any) -> list[Any]:
        if namespace == "closed":
            raise Forbidden(status=403)
        return [{"metadata": {"namespace": namespace, "name": "m"}}]


def test_a_namespace_that_may_not_be_listed_keeps_back_no_other() -> None:
    async def main() -> int:
        queue = WorkQueue(clock=virtual_now)
        api = cast("KubernetesApi", Guarded())
        await Resync(api, queue, namespaces=["closed", "open"], period=10, jitter=lambda: 0.5).once()
        return queue.depth

    assert run_in_virtual_time(main()) == 2


def test_a_round_that_is_wanted_comes_at_once() -> None:
    async def main() -> int:
        queue, wanted = WorkQueue(clock=virtual_now), asyncio.Event()
        api = cast("KubernetesApi", Guarded())
        resync = Resync(api, queue, namespaces=["open"], period=1e9, jitter=lambda: 0.5)
        running = asyncio.create_task(resync.run_when(wanted))
        wanted.set()
        await asyncio.sleep(1)
        running.cancel()
        return queue.depth

    assert run_in_virtual_time(main()) == 2

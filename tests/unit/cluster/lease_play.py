"""Processes that want one Lease, in virtual time."""

from __future__ import annotations

import asyncio
import contextlib
import copy
from typing import TYPE_CHECKING, Any

from specdec_operator.cluster.errors import (
    AlreadyExists,
    ClusterError,
    Conflict,
    Forbidden,
    NotFound,
    ServerUnavailable,
)
from specdec_operator.cluster.lease import LeaseElector, LeaseSettings
from tests.virtual_time import run_in_virtual_time, virtual_now

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

Json = dict[str, Any]


class LeaseServer:
    """One Lease with optimistic concurrency, as the API server keeps it."""

    def __init__(self) -> None:
        self.lease: Json | None = None
        self.version = 0
        self.writes: list[tuple[float, str]] = []

    def stored(self, body: Json) -> Json:
        self.version += 1
        self.lease = copy.deepcopy(body)
        self.lease["metadata"]["resourceVersion"] = str(self.version)
        self.writes.append((virtual_now(), self.holder()))
        return copy.deepcopy(self.lease)

    def holder(self) -> str:
        return str((self.lease or {}).get("spec", {}).get("holderIdentity", ""))


class LeaseClient:
    """One process's way to the server, which can be cut or hang."""

    def __init__(self, server: LeaseServer) -> None:
        self.server = server
        self.cut = False
        self.hangs = False
        self.refused = False
        self.refused_writes: Callable[[], ClusterError] | None = None

    async def _pass(self) -> None:
        await asyncio.sleep(0.01)
        if self.hangs:
            await asyncio.sleep(3600)
        if self.cut:
            raise ServerUnavailable(status=0)
        if self.refused:
            raise Forbidden(status=403)

    async def get(self, *_: Any, **__: Any) -> Json:
        await self._pass()
        if self.server.lease is None:
            raise NotFound(status=404)
        return copy.deepcopy(self.server.lease)

    async def create(self, _resource: Any, body: Json) -> Json:
        await self._pass()
        if self.refused_writes:
            raise self.refused_writes()
        if self.server.lease is not None:
            raise AlreadyExists(status=409)
        return self.server.stored(body)

    async def replace(self, _resource: Any, body: Json) -> Json:
        await self._pass()
        if self.refused_writes:
            raise self.refused_writes()
        if body["metadata"]["resourceVersion"] != str(self.server.version):
            raise Conflict(status=409)
        return self.server.stored(body)


class Process:
    """One elector with work that lasts until told to stop."""

    def __init__(self, server: LeaseServer, identity: str, *, jitter: float = 0.0) -> None:
        self.client = LeaseClient(server)
        api: Any = self.client
        self.seen: list[tuple[float, bool]] = []
        self.elector = LeaseElector(
            api,
            LeaseSettings("a", "operator", identity),
            clock=virtual_now,
            jitter=lambda: jitter,
            observe=lambda leading: self.seen.append((virtual_now(), leading)),
        )
        self.leads = asyncio.Event()
        self.stop = asyncio.Event()
        self.cancelled = False
        self.task = asyncio.create_task(self.elector.run(self._work))

    async def _work(self) -> None:
        self.leads.set()
        try:
            await self.stop.wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise

    async def crash(self) -> None:
        """End without the chance to say anything to the server."""
        self.client.cut = True
        self.task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self.task


def scenario(play: Callable[[LeaseServer], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        await play(LeaseServer())
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)

    run_in_virtual_time(main())

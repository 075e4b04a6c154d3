"""The operator's own HTTP endpoints: is it alive, is it ready, what does it count."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from aiohttp import web
from prometheus_client import generate_latest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from prometheus_client import CollectorRegistry

STUCK_SECONDS = 300.0


class Health:
    """What the probes ask.

    Args:
        stalled: Seconds for which work has waited while none was begun or ended. How much waits says nothing: after a
            start everything does.
    """

    def __init__(self, *, stalled: Callable[[], float]) -> None:
        self._stalled = stalled
        self._ready = False
        self._missing: dict[str, str] = {}

    def set_ready(self) -> None:
        """The process can do its work: it leads, or waits to lead."""
        self._ready = True

    def set_missing(self, topic: str, missing: str) -> None:
        """Say what the process lacks of something, and what to do; empty once it is there."""
        self._missing[topic] = missing

    def alive(self) -> str:
        """Why the process should be restarted; empty if it should not."""
        stalled = self._stalled()
        return f"keys wait, and no run has begun or ended for {stalled:.0f} s" if stalled > STUCK_SECONDS else ""

    def ready(self) -> str:
        """Why the process is not ready; empty if it is."""
        missing = "\n".join(said for said in self._missing.values() if said)
        return missing or ("" if self._ready else "starting: the API server has not answered yet")


@asynccontextmanager
async def health_server(health: Health, registry: CollectorRegistry, *, host: str, port: int) -> AsyncIterator[int]:
    """Serve /healthz, /readyz and /metrics; gives the port that was bound."""
    application = web.Application()

    async def alive(_request: web.Request) -> web.Response:
        return _answer(health.alive())

    async def ready(_request: web.Request) -> web.Response:
        return _answer(health.ready())

    async def metrics(_request: web.Request) -> web.Response:
        return web.Response(body=generate_latest(registry), headers={"Content-Type": "text/plain; version=0.0.4"})

    application.router.add_get("/healthz", alive)
    application.router.add_get("/readyz", ready)
    application.router.add_get("/metrics", metrics)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port)
        await site.start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


def _answer(trouble: str) -> web.Response:
    return web.Response(text=trouble or "ok", status=503 if trouble else 200)

from __future__ import annotations

import aiohttp
from prometheus_client import CollectorRegistry, Counter

from specdec_operator.health import STUCK_SECONDS, Health, health_server


async def answer(health: Health, path: str, registry: CollectorRegistry | None = None) -> tuple[int, str]:
    async with (
        health_server(health, registry or CollectorRegistry(), host="127.0.0.1", port=0) as port,
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{port}{path}") as response,
    ):
        return response.status, await response.text()


async def test_a_process_is_not_ready_before_the_api_server_answered() -> None:
    status, text = await answer(Health(stalled=lambda: 0), "/readyz")

    assert (status, text) == (503, "starting: the API server has not answered yet")


async def test_a_process_is_ready_once_the_api_server_answered() -> None:
    health = Health(stalled=lambda: 0)
    health.set_ready()

    assert await answer(health, "/readyz") == (200, "ok")


async def test_a_leader_that_waits_for_its_kinds_is_not_ready_and_says_why() -> None:
    health = Health(stalled=lambda: 0)
    health.set_ready()
    health.set_missing("kinds", "the API server does not serve x: apply the crds/")

    assert await answer(health, "/readyz") == (503, "the API server does not serve x: apply the crds/")


async def test_all_that_is_missing_is_told_and_what_has_come_is_not() -> None:
    health = Health(stalled=lambda: 0)
    health.set_ready()
    for topic, said in (("kinds", "one"), ("rights", "two"), ("definitions", "three"), ("kinds", "")):
        health.set_missing(topic, said)

    assert await answer(health, "/readyz") == (503, "two\nthree")


async def test_a_process_that_cannot_start_says_what_it_lacks() -> None:
    health = Health(stalled=lambda: 0)
    health.set_missing("rights", "the operator may not get leases")

    assert await answer(health, "/readyz") == (503, "the operator may not get leases")


async def test_a_process_whose_keys_are_served_is_alive() -> None:
    assert await answer(Health(stalled=lambda: STUCK_SECONDS), "/healthz") == (200, "ok")


async def test_a_process_that_serves_no_key_for_minutes_is_not_alive() -> None:
    status, text = await answer(Health(stalled=lambda: STUCK_SECONDS + 1), "/healthz")

    assert (status, text) == (503, "keys wait, and no run has begun or ended for 301 s")


async def test_metrics_are_the_registrys() -> None:
    registry = CollectorRegistry()
    Counter("seen", "what was seen", registry=registry).inc()

    assert "seen_total 1.0" in (await answer(Health(stalled=lambda: 0), "/metrics", registry))[1]

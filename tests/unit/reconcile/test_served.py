from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

from specdec_operator.cluster.errors import NotFound
from specdec_operator.reconcile.served import LOOK_AGAIN_SECONDS, until_served
from tests.virtual_time import run_in_virtual_time, virtual_now

if TYPE_CHECKING:
    import pytest

    from specdec_operator.cluster.api import KubernetesApi
    from specdec_operator.cluster.resources import ResourceType


class Server:
    """Serves one kind from the beginning, and the other after so many seconds."""

    def __init__(self, *, after: float) -> None:
        self.after = after
        self.listed: list[str | None] = []

    async def list(self, resource: ResourceType, *, namespace: str | None) -> list[Any]:
        self.listed.append(namespace)
        if resource.plural == "modelartifacts" and virtual_now() < self.after:
            raise NotFound(status=404)
        return []


def wait(
    server: Server, *, stop: asyncio.Event | None = None, namespace: str | None = None, said: list[str] | None = None
) -> float:
    """Return the second at which the wait was over."""

    async def until() -> float:
        await until_served(
            cast("KubernetesApi", server),
            namespace=namespace,
            stop=stop or asyncio.Event(),
            missing_changed=(said if said is not None else []).append,
        )
        return virtual_now()

    return run_in_virtual_time(until())


def test_kinds_that_are_served_need_no_wait() -> None:
    assert wait(Server(after=0)) == 0


def test_kinds_that_come_later_are_noticed() -> None:
    assert 10 <= wait(Server(after=10)) <= 10 + 2 * LOOK_AGAIN_SECONDS


def test_a_kind_that_is_missing_is_named_with_the_remedy(caplog: pytest.LogCaptureFixture) -> None:
    wait(Server(after=1))
    assert "modelartifacts.specdec.dev: apply the crds/" in caplog.text


def test_what_is_missing_is_said_once_and_taken_back(caplog: pytest.LogCaptureFixture) -> None:
    said: list[str] = []
    wait(Server(after=60), said=said)
    assert (len(caplog.records), len(said), said[-1]) == (1, 2, "")


def test_the_remedy_is_a_command() -> None:
    said: list[str] = []
    wait(Server(after=1), said=said)
    assert "kubectl apply --server-side -f crds/" in said[0]


def test_a_stop_ends_the_wait() -> None:
    stop = asyncio.Event()
    stop.set()
    assert wait(Server(after=1e9), stop=stop) == 0


def test_only_a_namespace_that_may_be_listed_is_listed() -> None:
    server = Server(after=0)
    wait(server, namespace="models")
    assert set(server.listed) == {"models"}

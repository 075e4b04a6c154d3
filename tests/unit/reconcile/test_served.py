from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from specdec_operator.cluster.errors import Forbidden, NotFound
from specdec_operator.reconcile.served import LOOK_AGAIN_SECONDS, until_served
from tests.virtual_time import run_in_virtual_time, virtual_now

if TYPE_CHECKING:
    import pytest

    from specdec_operator.cluster.errors import ApiError


class Server:
    """Serves one kind from the beginning, and the other after so many seconds."""

    def __init__(self, *, after: float, error: ApiError | None = None) -> None:
        self.after = after
        self.error = error
        self.read: list[str] = []

    async def read_document(self, path: str) -> dict[str, Any]:
        self.read.append(path)
        if self.error:
            raise self.error
        names = ["speculativemodels", *(["modelartifacts"] if virtual_now() >= self.after else [])]
        return {"resources": [{"name": name} for name in names]}


def wait(server: Server, *, stop: asyncio.Event | None = None, said: list[str] | None = None) -> float:
    """Return the second at which the wait was over."""

    async def until() -> float:
        told = said if said is not None else []
        await until_served(server, stop=stop or asyncio.Event(), missing_changed=told.append)
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


def test_discovery_is_asked_which_needs_no_right() -> None:
    server = Server(after=0)
    wait(server)
    assert server.read == ["/apis/specdec.dev/v1alpha1"]


def test_a_closed_discovery_is_not_waited_for() -> None:
    assert wait(Server(after=0, error=Forbidden(status=403))) == 0


def test_an_unknown_group_serves_neither_kind(caplog: pytest.LogCaptureFixture) -> None:
    stop = asyncio.Event()

    async def until() -> None:
        waiting = asyncio.create_task(
            until_served(Server(after=0, error=NotFound(status=404)), stop=stop, missing_changed=lambda _said: None)
        )
        await asyncio.sleep(1)
        stop.set()
        await waiting

    run_in_virtual_time(until())
    assert "speculativemodels.specdec.dev, modelartifacts.specdec.dev" in caplog.text

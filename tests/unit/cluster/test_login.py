from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import kopf
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from yarl import URL

from specdec_operator.cluster.credentials import Credentials, StaticToken, Tls
from specdec_operator.cluster.errors import CredentialsError
from specdec_operator.cluster.login import WatchPacing, load_credentials, login_handler, open_session

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    import aiohttp


class Tokens:
    """Another token each time."""

    def __init__(self) -> None:
        self.given = 0

    async def token(self) -> str:
        self.given += 1
        return f"token-{self.given}"


@contextlib.asynccontextmanager
async def recording() -> AsyncIterator[tuple[str, list[dict[str, str]]]]:
    seen: list[dict[str, str]] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append(dict(request.headers))
        return web.Response()

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    async with TestServer(app) as server:
        yield str(server.make_url("/")), seen


def credentials(server: str, **rest: Any) -> Credentials:
    return Credentials(server=server, namespace="a", tls=Tls(), **{"tokens": StaticToken(), **rest})


async def test_each_request_carries_the_token_of_the_moment() -> None:
    async with recording() as (server, seen), open_session(credentials(server, tokens=Tokens())) as session:
        for _ in range(2):
            async with session.get(server):
                pass
    assert [headers["Authorization"] for headers in seen] == ["Bearer token-1", "Bearer token-2"]


async def test_without_a_token_no_authorization_is_sent() -> None:
    async with recording() as (server, seen), open_session(credentials(server)) as session, session.get(server):
        pass
    assert "Authorization" not in seen[0]


async def test_further_headers_are_sent() -> None:
    async with recording() as (server, seen):
        made = credentials(server, headers={"Impersonate-User": "jane"})
        async with open_session(made) as session, session.get(server):
            pass
    assert seen[0]["Impersonate-User"] == "jane"


async def test_each_login_of_kopf_gets_a_session_of_its_own() -> None:
    login = login_handler(credentials("https://api"))
    first, second = await login(), await login()
    assert isinstance(first, kopf.AiohttpSession)
    sessions = (first.aiohttp_session, second.aiohttp_session)
    for session in sessions:
        await session.close()
    assert sessions[0] is not sessions[1]


async def paced(*paths: str) -> list[float]:
    """Return how long each watch was held back; no time passes between them."""
    slept: list[float] = []
    held: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    async def respond(_request: aiohttp.ClientRequest) -> Any:
        return None

    pacing = WatchPacing(clock=lambda: 50.0, sleep=sleep)
    for path in paths:
        request: Any = _Request(path)
        slept.clear()
        await pacing(request, respond)
        held.append(sum(slept))
    return held


class _Request:
    def __init__(self, path: str) -> None:
        self.url = URL(f"https://api{path}")


async def test_watches_of_one_path_are_kept_a_second_apart() -> None:
    assert await paced("/pods?watch=true", "/pods?watch=true", "/pods?watch=true") == [0.0, 1.0, 2.0]


async def test_watches_of_different_paths_do_not_wait_for_each_other() -> None:
    assert await paced("/pods?watch=true", "/jobs?watch=true") == [0.0, 0.0]


async def test_other_requests_are_not_held_back() -> None:
    assert await paced("/pods", "/pods") == [0.0, 0.0]


def kubeconfig(path: Path, server: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f"{{current-context: c, contexts: [{{name: c, context: {{cluster: c}}}}], "
        f"clusters: [{{name: c, cluster: {{server: '{server}'}}}}]}}"
    )
    return path


def test_a_kubeconfig_asked_for_by_name_comes_first(tmp_path: Path) -> None:
    asked = kubeconfig(tmp_path / "asked", "https://asked")
    environ = {"KUBECONFIG": str(kubeconfig(tmp_path / "environment", "https://environment"))}
    assert load_credentials(environ=environ, kubeconfig=asked).server == "https://asked"


def test_the_environments_kubeconfig_comes_before_the_pods_account(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "environment", "https://environment")
    environ = {"KUBECONFIG": str(path), "KUBERNETES_SERVICE_HOST": "10.96.0.1"}
    assert load_credentials(environ=environ).server == "https://environment"


def test_the_users_own_kubeconfig_is_the_last_resort(tmp_path: Path) -> None:
    kubeconfig(tmp_path / ".kube" / "config", "https://home")
    assert load_credentials(environ={"HOME": str(tmp_path)}).server == "https://home"


def test_without_any_credentials_the_remedy_is_named(tmp_path: Path) -> None:
    with pytest.raises(CredentialsError, match="no credentials: set KUBECONFIG"):
        load_credentials(environ={"HOME": str(tmp_path)})

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from specdec_operator.cluster.errors import Forbidden, NotFound, ServerUnavailable, TooManyRequests, WritesFenced
from specdec_operator.cluster.http import HttpKubernetesApi
from specdec_operator.cluster.resources import CONFIG_MAPS, NODES, SPECULATIVE_MODELS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

Json = dict[str, Any]
BODY: Json = {"metadata": {"namespace": "a", "name": "b"}, "data": {"z": "1", "a": "2"}}


@dataclass
class Asked:
    method: str
    path: str
    query: dict[str, str]
    content_type: str
    accept: str
    body: str


@dataclass
class Scripted:
    """A server that gives the answers of a script, and the client that talks to it."""

    api: HttpKubernetesApi
    asked: list[Asked] = field(default_factory=list)
    answers: list[web.Response] = field(default_factory=list)
    slept: list[float] = field(default_factory=list)
    observed: list[tuple[str, str, str]] = field(default_factory=list)
    writable: bool = True

    async def answer(self, request: web.Request) -> web.Response:
        content_type, accept = request.headers["Content-Type"], request.headers["Accept"]
        text = await request.text()
        self.asked.append(Asked(request.method, request.path, dict(request.query), content_type, accept, text))
        return self.answers.pop(0) if self.answers else web.json_response({"metadata": {}})

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    def observe(self, verb: str, plural: str, code: str) -> None:
        self.observed.append((verb, plural, code))

    def may_write(self) -> bool:
        return self.writable


@contextlib.asynccontextmanager
async def scripted() -> AsyncIterator[Scripted]:
    made: Scripted = Scripted.__new__(Scripted)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", made.answer)
    async with TestServer(app) as server, aiohttp.ClientSession() as session:
        api = HttpKubernetesApi(
            session,
            str(server.make_url("/")),
            may_write=made.may_write,
            observe=made.observe,
            jitter=lambda: 1.0,
            sleep=made.sleep,
        )
        Scripted.__init__(made, api)
        yield made


@pytest.fixture
async def server() -> AsyncIterator[Scripted]:
    async with scripted() as made:
        yield made


def failure(status: int, **headers: str) -> web.Response:
    return web.json_response({"kind": "Status", "message": "no"}, status=status, headers=headers)


def page(names: list[str], token: str = "") -> web.Response:
    items = [{"metadata": {"name": name}} for name in names]
    return web.json_response({"metadata": {"continue": token}, "items": items})


async def read(server: Scripted) -> Json:
    return await server.api.get(CONFIG_MAPS, namespace="a", name="b")


async def test_a_create_is_strict_and_names_its_manager(server: Scripted) -> None:
    await server.api.create(CONFIG_MAPS, BODY)
    assert server.asked[0].query == {"fieldManager": "specdec-operator", "fieldValidation": "Strict"}


async def test_an_apply_is_strict_names_its_manager_and_says_whether_it_forces(server: Scripted) -> None:
    await server.api.apply(CONFIG_MAPS, BODY, force=True)
    wanted = {"fieldManager": "specdec-operator", "fieldValidation": "Strict", "force": "true"}
    assert server.asked[0].query == wanted


async def test_a_status_is_applied_to_its_subresource(server: Scripted) -> None:
    await server.api.apply_status(SPECULATIVE_MODELS, BODY)
    assert server.asked[0].path == "/apis/specdec.dev/v1alpha1/namespaces/a/speculativemodels/b/status"


async def test_each_patch_has_its_content_type(server: Scripted) -> None:
    await server.api.apply(CONFIG_MAPS, BODY)
    await server.api.patch_json(CONFIG_MAPS, namespace="a", name="b", operations=[])
    await server.api.patch_merge(CONFIG_MAPS, namespace="a", name="b", patch={})
    kinds = [asked.content_type for asked in server.asked]
    assert kinds == ["application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"]


async def test_keys_are_sent_sorted(server: Scripted) -> None:
    await server.api.create(CONFIG_MAPS, BODY)
    assert server.asked[0].body == '{"data":{"a":"2","z":"1"},"metadata":{"name":"b","namespace":"a"}}'


async def test_a_delete_names_its_propagation_and_preconditions(server: Scripted) -> None:
    await server.api.delete(CONFIG_MAPS, namespace="a", name="b", uid="u", resource_version="7")
    options = json.loads(server.asked[0].body)
    wanted = ("Background", {"uid": "u", "resourceVersion": "7"})
    assert (options["propagationPolicy"], options["preconditions"]) == wanted


async def test_a_list_follows_its_continuation(server: Scripted) -> None:
    server.answers = [page(["a", "b"], token="t"), page(["c"])]
    listed = await server.api.list(CONFIG_MAPS, namespace="a")
    assert [each["metadata"]["name"] for each in listed] == ["a", "b", "c"]


async def test_a_list_asks_for_pages(server: Scripted) -> None:
    server.answers = [page(["a"], token="t"), page([])]
    await server.api.list(CONFIG_MAPS, label_selector="x=y")
    wanted = {"labelSelector": "x=y", "limit": "500", "continue": "t"}
    assert server.asked[1].query == wanted


async def test_a_bounded_list_reads_no_further_than_it_must(server: Scripted) -> None:
    server.answers = [page(["a", "b"], token="t"), page(["c", "d"], token="u"), page(["e"])]
    listed = await server.api.list(CONFIG_MAPS, at_most=3)
    assert (len(listed), len(server.asked), server.asked[0].query["limit"]) == (3, 2, "3")


async def test_a_list_of_metadata_alone_leaves_the_rest_to_the_server(server: Scripted) -> None:
    server.answers = [page(["a"], token="t"), page(["b"])]
    listed = await server.api.list(NODES, metadata_only=True)
    assert {asked.accept for asked in server.asked} == {
        "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
    }
    assert {each["kind"] for each in listed} == {"Node"}


async def test_a_list_whose_continuation_expired_starts_again(server: Scripted) -> None:
    server.answers = [page(["a"], token="t"), failure(410), page(["a", "b"])]
    assert len(await server.api.list(CONFIG_MAPS)) == 2


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_read_is_repeated_after_a_passing_failure(server: Scripted, status: int) -> None:
    server.answers = [failure(status)]
    await read(server)
    assert len(server.asked) == 2


async def test_a_read_gives_up_in_the_end(server: Scripted) -> None:
    server.answers = [failure(503) for _ in range(9)]
    with pytest.raises(ServerUnavailable):
        await read(server)
    assert len(server.asked) == 4


async def test_a_read_waits_longer_each_time(server: Scripted) -> None:
    server.answers = [failure(503) for _ in range(3)]
    await read(server)
    assert server.slept == [0.25, 0.5, 1.0]


async def test_a_read_waits_as_long_as_the_server_says(server: Scripted) -> None:
    server.answers = [failure(429, **{"Retry-After": "3"})]
    await read(server)
    assert server.slept == [3.0]


async def test_a_read_waits_no_longer_than_its_maximum(server: Scripted) -> None:
    server.answers = [failure(429, **{"Retry-After": "3600"})]
    await read(server)
    assert server.slept == [5.0]


async def test_a_refused_read_is_not_repeated(server: Scripted) -> None:
    server.answers = [failure(404)]
    with pytest.raises(NotFound):
        await read(server)
    assert len(server.asked) == 1


@pytest.mark.parametrize(("status", "error"), [(429, TooManyRequests), (500, ServerUnavailable)])
async def test_a_write_is_never_repeated(server: Scripted, status: int, error: type[Exception]) -> None:
    server.answers = [failure(status)]
    with pytest.raises(error):
        await server.api.create(CONFIG_MAPS, BODY)
    assert len(server.asked) == 1


async def test_a_fenced_write_is_not_started(server: Scripted) -> None:
    server.writable = False
    with pytest.raises(WritesFenced):
        await server.api.delete(CONFIG_MAPS, namespace="a", name="b")
    assert server.asked == []


async def test_a_fenced_client_still_reads(server: Scripted) -> None:
    server.writable = False
    await read(server)
    assert len(server.asked) == 1


async def test_each_request_is_counted_with_its_code(server: Scripted) -> None:
    server.answers = [failure(500)]
    await read(server)
    assert server.observed == [("get", "configmaps", "500"), ("get", "configmaps", "200")]


async def test_a_server_that_is_not_there_is_unavailable() -> None:
    observed: list[str] = []
    async with aiohttp.ClientSession() as session:
        # Port 9 of loopback: nothing listens.
        api = HttpKubernetesApi(
            session, "http://127.0.0.1:9", observe=lambda _verb, _plural, code: observed.append(code)
        )
        with pytest.raises(ServerUnavailable):
            await api.create(CONFIG_MAPS, BODY)
    assert observed == ["error"]


async def test_a_page_of_a_proxy_is_an_error_that_quotes_it(server: Scripted) -> None:
    server.answers = [web.Response(text="<h1>Bad gateway</h1>", status=403)]
    with pytest.raises(Forbidden, match="Bad gateway"):
        await read(server)


async def test_a_success_that_is_no_object_is_the_failure_of_something_between(server: Scripted) -> None:
    server.answers = [web.Response(text="<h1>Please log in</h1>")]
    with pytest.raises(ServerUnavailable, match="Please log in"):
        await server.api.create(CONFIG_MAPS, BODY)


async def test_a_namespaced_object_without_namespace_is_refused_before_it_is_sent(server: Scripted) -> None:
    with pytest.raises(ValueError, match="ConfigMap 'b' needs a namespace"):
        await server.api.create(CONFIG_MAPS, {"metadata": {"name": "b"}})

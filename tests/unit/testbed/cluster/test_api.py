from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from testbed.cluster.api import ApiClient
from testbed.cluster.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass
class Server:
    """A server that answers each request with its path, but with a 404 below /missing.

    Attributes:
        asked: method and path of each request.
        clients: the port that each came from.
        closes: whether it closes a connection after an answer, without saying so.
        breaks: how many requests it leaves without an answer, closing the connection.
    """

    url: str = ""
    asked: list[str] = field(default_factory=list)
    clients: list[int] = field(default_factory=list)
    closes: bool = False
    breaks: int = 0

    def client(self) -> ApiClient:
        return ApiClient(self.url, Path("none"), "secret")


@pytest.fixture
def server() -> Iterator[Server]:
    served = Server()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one_request(self) -> None:
            super().handle_one_request()
            self.close_connection = self.close_connection or served.closes

        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            served.asked.append(f"{self.command} {self.path}")
            served.clients.append(self.client_address[1])
            if served.breaks:
                served.breaks -= 1
                self.close_connection = True
                return
            said = json.dumps({"path": self.path, "authorization": self.headers["Authorization"]}).encode()
            self.send_response(404 if self.path.startswith("/missing") else 200)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def do_PATCH(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            return None

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        served.url = f"http://127.0.0.1:{listening.server_port}"
        threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        yield served
        served.closes = True
        listening.shutdown()


def test_a_request_carries_the_token(server: Server) -> None:
    assert server.client().get("/version")["authorization"] == "Bearer secret"


def test_requests_share_a_connection(server: Server) -> None:
    client = server.client()
    for _ in range(3):
        client.get("/version")
    assert len(set(server.clients)) == 1


def test_a_connection_that_the_server_closed_is_replaced(server: Server) -> None:
    client, server.closes = server.client(), True
    for _ in range(3):
        client.get("/version")
    assert len(set(server.clients)) == 3


@pytest.mark.parametrize("breaks", [1, 3])
def test_a_request_that_changes_nothing_outlives_broken_connections(server: Server, breaks: int) -> None:
    server.breaks = breaks
    assert server.client().get("/version")["path"] == "/version"
    assert len(server.asked) == breaks + 1


def test_a_change_is_not_sent_again(server: Server) -> None:
    server.breaks = 1
    with pytest.raises(ApiError) as broken:
        server.client().patch("/a", [])
    assert (broken.value.status, len(server.asked)) == (0, 1)


def test_whether_a_server_is_ready_is_asked_once(server: Server) -> None:
    server.breaks = 1
    assert (server.client().ready(), len(server.asked)) == (False, 1)


def test_a_refusal_tells_the_status_and_what_was_said(server: Server) -> None:
    with pytest.raises(ApiError, match=r"GET /missing/a: 404 .*/missing/a") as refused:
        server.client().get("/missing/a")
    assert refused.value.status == 404


def test_a_server_that_is_not_there_has_no_status() -> None:
    with pytest.raises(ApiError) as refused:
        ApiClient("http://127.0.0.1:1", Path("none"), "").get("/version")
    assert refused.value.status == 0


def test_what_is_tried_is_applied_strictly_and_not_kept(server: Server) -> None:
    server.client().apply("/api/v1/namespaces/a", {}, field_manager="a b", dry_run=True)
    query = "fieldManager=a+b&fieldValidation=Strict&force=true&dryRun=All"
    assert server.asked == [f"PATCH /api/v1/namespaces/a?{query}"]


def test_what_is_applied_is_kept(server: Server) -> None:
    server.client().apply("/api/v1/namespaces/a", {}, field_manager="a")
    assert "dryRun" not in server.asked[0]

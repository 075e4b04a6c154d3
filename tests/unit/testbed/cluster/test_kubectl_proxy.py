from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from testbed.cluster.errors import CommandError
from testbed.cluster.existing import ExistingCluster
from testbed.cluster.kubectl_proxy import reading_through_proxy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PROXY = f"""\
#!{sys.executable} -IS
import sys
from http.server import BaseHTTPRequestHandler
from socketserver import UnixStreamServer

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(404 if self.path == "/missing" else 200)
        self.end_headers()
        self.wfile.write(b'{{"host": "%s"}}' % self.headers["Host"].encode())

    def log_message(self, *_):
        pass

(path,) = (argument.partition("=")[2] for argument in sys.argv if argument.startswith("--unix-socket="))
UnixStreamServer(path, Handler).serve_forever()
"""
REFUSES = f"""\
#!{sys.executable} -IS
raise SystemExit("error: no such context")
"""


def existing(folder: Path, kubectl: str) -> ExistingCluster:
    """A cluster whose kubectl is a program of ours."""
    program = folder / "kubectl"
    program.write_text(kubectl)
    program.chmod(0o700)
    return ExistingCluster(folder / "kubeconfig", "127.0.0.1", folder, program)


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExistingCluster]:
    with reading_through_proxy(existing(tmp_path_factory.mktemp("proxied"), PROXY)) as cluster:
        yield cluster


def test_objects_are_read_from_the_one_host_that_the_proxy_takes_requests_to(proxied: ExistingCluster) -> None:
    assert proxied.client.get("/version") == {"host": "localhost"}


def test_a_refusal_tells_what_the_api_server_said(proxied: ExistingCluster) -> None:
    with pytest.raises(CommandError, match=r"/missing: 404 .*localhost"):
        proxied.client.get("/missing")


def test_the_proxy_ends_with_its_use(tmp_path: Path) -> None:
    with reading_through_proxy(existing(tmp_path, PROXY)) as cluster:
        pass
    with pytest.raises(CommandError, match="kubectl proxy: /version: "):
        cluster.client.get("/version")


def test_a_proxy_that_does_not_start_says_why(tmp_path: Path) -> None:
    with (
        pytest.raises(CommandError, match="error: no such context"),
        reading_through_proxy(existing(tmp_path, REFUSES)),
    ):
        pytest.fail("it was entered")

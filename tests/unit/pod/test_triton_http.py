"""The requests of the probes."""

from __future__ import annotations

import socket
import threading

import pytest

from specdec_operator.pod.sources import program_files
from specdec_operator.pod.triton_http import RequestFailed, get


def answered(content: bytes) -> str:
    """What a request reads where a server sends these bytes and closes."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(content)

        server = threading.Thread(target=serve)
        server.start()
        try:
            return get(int(listening.getsockname()[1]), "/metrics", timeout_seconds=5)
        finally:
            server.join()


@pytest.mark.parametrize("length", ["", "Content-Length: 4\r\n", "content-length:4\r\n"])
def test_an_answer_ends_with_its_connection(length: str) -> None:
    assert answered(f"HTTP/1.1 200 OK\r\nServer: x\r\n{length}\r\nload".encode()) == "load"


def test_an_answer_in_chunks_is_joined() -> None:
    chunks = b"1\r\nl\r\nA;x=y\r\noad\r\n 1234\r\n0\r\n\r\n"
    assert answered(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks) == "load\r\n 1234"


@pytest.mark.parametrize(
    "cut",
    [
        b"Content-Length: 5\r\n\r\nload",
        b"Transfer-Encoding: chunked\r\n\r\n4\r\nload\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n4\r\nlo",
        b"Transfer-Encoding: chunked\r\n\r\n",
    ],
)
def test_an_answer_that_is_cut_off_is_none(cut: bytes) -> None:
    with pytest.raises(RequestFailed, match="GET /metrics: IncompleteRead"):
        answered(b"HTTP/1.1 200 OK\r\n" + cut)


@pytest.mark.parametrize("content", [b"", b"\x15\x03\x01", b"HTTP/1.1 2\r\n\r\n"])
def test_what_speaks_no_http_has_not_answered(content: bytes) -> None:
    with pytest.raises(RequestFailed, match=r"GET /metrics: (BadStatusLine|RemoteDisconnected)"):
        answered(content)


def test_a_refused_connection_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = int(closed.getsockname()[1])
    with pytest.raises(RequestFailed, match="ConnectionRefusedError"):
        get(port, "/metrics", timeout_seconds=5)


@pytest.mark.parametrize("probe", ["canary", "liveness"])
def test_a_probe_brings_no_module_that_only_jobs_need(probe: str) -> None:
    brought = {key.removeprefix("specdec_operator.pod.") for key in program_files(probe)}
    assert brought.isdisjoint({"inputs.py", "program.py", "termination.py"})

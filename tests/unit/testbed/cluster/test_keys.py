from __future__ import annotations

import http.server
import ssl
import stat
import threading
import urllib.request
from typing import TYPE_CHECKING

import pytest

from testbed.cluster.keys import ServingCertificate, new_signing_key

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def certificate() -> ServingCertificate:
    return ServingCertificate.new(addresses=["127.0.0.1"], names=["localhost"])


@pytest.fixture
def port(certificate: ServingCertificate, tmp_path: Path) -> Iterator[int]:
    """The port of a server of this machine that shows the certificate."""
    certificate.write(tmp_path / "server.crt", tmp_path / "server.key")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_strict_client_that_trusts_the_chain_takes_the_certificate(
    certificate: ServingCertificate, port: int, host: str
) -> None:
    context = ssl.create_default_context(cadata=certificate.chain)
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    handlers = (urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
    with urllib.request.build_opener(*handlers).open(f"https://{host}:{port}/", timeout=5) as answer:
        assert answer.status == 200


def test_a_key_can_be_read_by_its_owner_only(certificate: ServingCertificate, tmp_path: Path) -> None:
    certificate.write(tmp_path / "server.crt", tmp_path / "server.key")
    assert stat.S_IMODE((tmp_path / "server.key").stat().st_mode) == 0o600


def test_each_signing_key_is_another() -> None:
    assert new_signing_key() != new_signing_key()

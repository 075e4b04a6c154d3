from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

import pytest

from specdec_operator.cluster.credentials import FileToken, StaticToken, Tls, service_account_credentials
from specdec_operator.cluster.errors import CredentialsError
from tests.unit.cluster.certificates import CERTIFICATE

if TYPE_CHECKING:
    from pathlib import Path

POD = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "6443"}


@pytest.fixture
def mounted(tmp_path: Path) -> Path:
    (tmp_path / "token").write_text("first\n")
    (tmp_path / "ca.crt").write_text(CERTIFICATE)
    (tmp_path / "namespace").write_text("specdec")
    return tmp_path


async def test_a_pod_has_a_server_a_namespace_and_a_token(mounted: Path) -> None:
    credentials = service_account_credentials(directory=mounted, environ=POD)
    token = await credentials.tokens.token()
    assert (credentials.server, credentials.namespace, token) == ("https://10.96.0.1:6443", "specdec", "first")


def test_an_address_of_version_six_stands_in_brackets(mounted: Path) -> None:
    credentials = service_account_credentials(directory=mounted, environ=POD | {"KUBERNETES_SERVICE_HOST": "fd00::1"})
    assert credentials.server == "https://[fd00::1]:6443"


def test_a_pod_trusts_its_own_authority_alone(mounted: Path) -> None:
    context = service_account_credentials(directory=mounted, environ=POD).tls.context()
    assert len(context.get_ca_certs()) == 1


def test_outside_a_pod_the_remedy_is_named(mounted: Path) -> None:
    with pytest.raises(CredentialsError, match="set KUBECONFIG"):
        service_account_credentials(directory=mounted, environ={})


def test_a_pod_without_a_mounted_account_is_told_why(tmp_path: Path) -> None:
    with pytest.raises(CredentialsError, match="automountServiceAccountToken"):
        service_account_credentials(directory=tmp_path, environ=POD)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


async def test_a_rotated_token_is_taken_up(mounted: Path) -> None:
    clock = Clock()
    source = FileToken(mounted / "token", clock=clock)
    await source.token()
    (mounted / "token").write_text("second")
    clock.now += 10
    assert await source.token() == "second"


async def test_a_token_is_not_read_at_each_request(mounted: Path) -> None:
    clock = Clock()
    source = FileToken(mounted / "token", clock=clock)
    await source.token()
    (mounted / "token").unlink()
    clock.now += 9
    assert await source.token() == "first"


async def test_a_missing_token_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CredentialsError, match=r"token: No such file.*is the token mounted"):
        await FileToken(tmp_path / "token").token()


async def test_an_empty_token_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("\n")
    with pytest.raises(CredentialsError, match="token is empty"):
        await FileToken(tmp_path / "token").token()


def test_a_token_does_not_show_in_logs() -> None:
    assert "secret" not in repr(StaticToken("secret"))


def test_a_broken_certificate_is_refused() -> None:
    with pytest.raises(CredentialsError, match="not usable PEM"):
        Tls(authority="no certificate").context()


def test_a_server_is_verified_unless_asked_otherwise() -> None:
    modes = (Tls().context().verify_mode, Tls(verify=False).context().verify_mode)
    assert modes == (ssl.CERT_REQUIRED, ssl.CERT_NONE)

from __future__ import annotations

import base64
import builtins
import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from specdec_operator.cluster.errors import CredentialsError
from specdec_operator.cluster.kubeconfig import kubeconfig_credentials
from tests.unit.cluster.certificates import CERTIFICATE, PRIVATE_KEY

if TYPE_CHECKING:
    from pathlib import Path

Json = dict[str, Any]


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def written(tmp_path: Path, *, user: Json | None = None, cluster: Json | None = None) -> Path:
    path = tmp_path / "config"
    content = {
        "current-context": "main",
        "clusters": [{"name": "c", "cluster": cluster or {"server": "https://api:6443/"}}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [
            {"name": "main", "context": {"cluster": "c", "user": "u", "namespace": "mine"}},
            {"name": "other", "context": {"cluster": "c"}},
        ],
    }
    path.write_text(yaml.safe_dump(content))
    return path


def test_the_current_context_is_used(tmp_path: Path) -> None:
    credentials = kubeconfig_credentials(written(tmp_path))
    assert (credentials.server, credentials.namespace) == ("https://api:6443", "mine")


def test_a_context_asked_for_is_used(tmp_path: Path) -> None:
    assert kubeconfig_credentials(written(tmp_path), context="other").namespace == "default"


async def test_a_token_is_read(tmp_path: Path) -> None:
    credentials = kubeconfig_credentials(written(tmp_path, user={"token": "t"}))
    assert await credentials.tokens.token() == "t"


async def test_a_token_file_is_found_beside_the_kubeconfig(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from-file")
    credentials = kubeconfig_credentials(written(tmp_path, user={"tokenFile": "token"}))
    assert await credentials.tokens.token() == "from-file"


def test_certificates_inside_the_file_are_usable(tmp_path: Path) -> None:
    user = {"client-certificate-data": encoded(CERTIFICATE), "client-key-data": encoded(PRIVATE_KEY)}
    cluster = {"server": "https://api", "certificate-authority-data": encoded(CERTIFICATE)}
    credentials = kubeconfig_credentials(written(tmp_path, user=user, cluster=cluster))
    assert len(credentials.tls.context().get_ca_certs()) == 1


def test_certificates_in_files_are_found_beside_the_kubeconfig(tmp_path: Path) -> None:
    (tmp_path / "c.pem").write_text(CERTIFICATE)
    (tmp_path / "k.pem").write_text(PRIVATE_KEY)
    user = {"client-certificate": "c.pem", "client-key": "k.pem"}
    tls = kubeconfig_credentials(written(tmp_path, user=user)).tls
    assert (tls.certificate, tls.private_key) == (CERTIFICATE, PRIVATE_KEY)


def test_impersonation_becomes_a_header(tmp_path: Path) -> None:
    assert kubeconfig_credentials(written(tmp_path, user={"as": "jane"})).headers == {"Impersonate-User": "jane"}


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CredentialsError, match="nothing: No such file"):
        kubeconfig_credentials(tmp_path / "nothing")


@pytest.mark.parametrize(("text", "said"), [("{", "is not YAML"), ("[]", "holds no map")])
def test_a_file_that_is_no_kubeconfig_is_named(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "config").write_text(text)
    with pytest.raises(CredentialsError, match=said):
        kubeconfig_credentials(tmp_path / "config")


def test_an_unknown_context_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(CredentialsError, match="no context named 'nowhere'; there are: main, other"):
        kubeconfig_credentials(written(tmp_path), context="nowhere")


def test_a_cluster_without_a_server_is_named(tmp_path: Path) -> None:
    with pytest.raises(CredentialsError, match="cluster 'c' has no server"):
        kubeconfig_credentials(written(tmp_path, cluster={"insecure-skip-tls-verify": True}))


def test_data_that_is_not_base64_is_named(tmp_path: Path) -> None:
    cluster = {"server": "https://api", "certificate-authority-data": "%%%"}
    with pytest.raises(CredentialsError, match="certificate-authority-data is not base64"):
        kubeconfig_credentials(written(tmp_path, cluster=cluster))


def test_a_certificate_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(CredentialsError, match=r"client-certificate gone\.pem: No such file"):
        kubeconfig_credentials(written(tmp_path, user={"client-certificate": "gone.pem"}))


def plugin(tmp_path: Path) -> Json:
    answer = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": "from-plugin"},
    }
    (tmp_path / "answer.json").write_text(json.dumps(answer))
    return {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "cat",
            "args": [str(tmp_path / "answer.json")],
            "interactiveMode": "Never",
        }
    }


async def test_a_login_plugin_is_run(tmp_path: Path) -> None:
    credentials = kubeconfig_credentials(written(tmp_path, user=plugin(tmp_path)))
    assert await credentials.tokens.token() == "from-plugin"


def test_a_login_plugin_without_its_package_names_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_import = builtins.__import__

    def without_kubernetes(name: str, *rest: Any) -> Any:
        if name == "kubernetes":
            raise ImportError(name)
        return real_import(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_kubernetes)
    with pytest.raises(CredentialsError, match=r"pip install 'specdec-operator\[kubeconfig\]'"):
        kubeconfig_credentials(written(tmp_path, user=plugin(tmp_path)))

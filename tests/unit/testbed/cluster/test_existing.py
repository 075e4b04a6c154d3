from __future__ import annotations

from testbed.cluster.existing import with_token

ADMINISTRATORS = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "kind",
    "clusters": [
        {"name": "kind", "cluster": {"server": "https://127.0.0.1:6443", "certificate-authority-data": "Q0E="}}
    ],
    "contexts": [{"name": "kind", "context": {"cluster": "kind", "user": "admin", "namespace": "mine"}}],
    "users": [{"name": "admin", "user": {"client-certificate-data": "Q0VSVA==", "client-key-data": "S0VZ"}}],
}


def test_a_service_accounts_kubeconfig_holds_no_credentials_of_the_administrator() -> None:
    assert with_token(ADMINISTRATORS, "t")["users"] == [{"name": "bearer", "user": {"token": "t"}}]


def test_a_service_accounts_kubeconfig_leads_to_the_same_server() -> None:
    made = with_token(ADMINISTRATORS, "t")
    assert made["clusters"] == ADMINISTRATORS["clusters"]
    assert made["contexts"] == [{"name": "kind", "context": {"cluster": "kind", "user": "bearer"}}]

"""What a cluster needs before the operator runs: its CRDs and its rights, exactly those that it ships with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from specdec_operator.api.yaml_text import read_yaml_documents
from specdec_operator.cluster.rights import own, rules
from testbed.operator.chart import NAMESPACE, ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from testbed.cluster import ClusterAccess

CRDS = ROOT / "crds"
MANIFEST = ROOT / "manifests" / "operator.yaml"
SERVICE_ACCOUNT = "specdec-operator"
# What an operator needs that runs as a process beside the cluster; as a pod it comes by its chart.
KINDS = frozenset({"Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"})


def install(cluster: ClusterAccess) -> None:
    """Apply CRDs, namespace, service account and roles, and wait until the API server serves the CRDs."""
    cluster.kubectl("apply", "--server-side", "--force-conflicts", f"--filename={CRDS}")
    install_rights(cluster)
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=30s", f"--filename={CRDS}")


def install_rights(cluster: ClusterAccess) -> None:
    """Apply namespace, service account and roles."""
    cluster.kubectl("apply", "--server-side", "--filename=-", stdin=yaml.safe_dump_all(rights()))


def grant_instance(cluster: ClusterAccess, name: str) -> None:
    """Let the operator's account keep a Lease of another name too, as an installation of that name would."""
    metadata = {"name": f"instance-{name}", "namespace": NAMESPACE}
    role = {"kind": "Role", "metadata": metadata, "rules": rules(own(name))}
    binding = {
        "kind": "RoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": metadata["name"]},
        "subjects": [{"kind": "ServiceAccount", "name": SERVICE_ACCOUNT, "namespace": NAMESPACE}],
    }
    documents = [{"apiVersion": "rbac.authorization.k8s.io/v1", **document} for document in (role, binding)]
    cluster.kubectl("apply", "--server-side", "--filename=-", stdin=yaml.safe_dump_all(documents))


def rights() -> list[dict[str, Any]]:
    """Return the account and its roles from the shipped manifest."""
    documents: list[dict[str, Any]] = read_yaml_documents(MANIFEST.read_text(encoding="utf-8"))
    return [document for document in documents if document["kind"] in KINDS]


def operator_kubeconfig(cluster: ClusterAccess) -> Path:
    """Write a kubeconfig of the operator's service account: what it may not do there, it may not do anywhere."""
    return cluster.kubeconfig_for_service_account(namespace=NAMESPACE, name=SERVICE_ACCOUNT)

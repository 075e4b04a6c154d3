"""What the demo needs of a cluster that the user already has; what is missing is said with the commands that help."""

from __future__ import annotations

import socket
from ipaddress import ip_address
from typing import TYPE_CHECKING

from testbed.demo.errors import DemoError
from testbed.demo.objects import GPU
from testbed.operator.chart import NAME as CHART_NAME
from testbed.operator.chart import NAMESPACE as OPERATOR_NAMESPACE
from testbed.session import GPUS, PRODUCT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from testbed.cluster import ExistingCluster
    from testbed.demo.models import Json

PRODUCT_LABEL = "nvidia.com/gpu.product"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
OPERATOR_KINDS = "deployments,clusterroles,clusterrolebindings"
OPERATOR_LABEL = f"app.kubernetes.io/name={CHART_NAME}"


def load_commands(operator_image: str) -> str:
    """Return the commands that bring both images onto the nodes."""
    return (
        "  python -m testbed.runtime build --output sim.tar\n"
        "  python -m testbed.operator build --output operator.tar   # as root; with Docker, in its place:\n"
        f"  docker build --tag {operator_image} . && docker save --output operator.tar {operator_image}\n"
        "  kind load image-archive sim.tar             # and operator.tar; or on each node of another cluster:\n"
        "  ctr --namespace k8s.io images import sim.tar"
    )


def require_usable(cluster: ExistingCluster, *, namespace: str) -> None:
    """Check all that the demo needs, and that it will touch nothing that is there.

    Raises:
        CommandError: the cluster can't be reached or refuses; the message is kubectl's.
        DemoError: something is missing or in the way; all of it is told at once.
    """
    problems = [*_address_problems(cluster.host_address)]
    if not cluster.kubeconfig.is_file():
        raise DemoError(f"{cluster.kubeconfig}: no such file; KUBECONFIG names one kubeconfig file")
    nodes = cluster.client.get("/api/v1/nodes")["items"]
    classes = cluster.client.get("/apis/storage.k8s.io/v1/storageclasses")["items"]
    problems += [*_present(cluster, namespace), *gpu_problems(nodes), *storage_problems(classes)]
    if problems:
        raise DemoError("\n".join(["the cluster can't carry the demo as it is:", *problems]))


def gpu_problems(nodes: Sequence[Json]) -> Iterator[str]:
    """Say what no node has: GPUs of the examples' product."""
    if any(_gpus(node) for node in nodes):
        return
    name = nodes[0]["metadata"]["name"] if nodes else "NODE"
    operations = ", ".join(
        f'{{"op": "add", "path": "/status/{field}/nvidia.com~1gpu", "value": "{GPUS}"}}'
        for field in ("capacity", "allocatable")
    )
    yield (
        f"no node has {GPU} and the label {PRODUCT_LABEL}={PRODUCT}; declare them on a test node without GPUs:\n"
        f"  kubectl label node {name} {PRODUCT_LABEL}={PRODUCT}\n"
        f"  kubectl patch node {name} --subresource=status --type=json --patch='[{operations}]'"
    )


def storage_problems(classes: Sequence[Json]) -> Iterator[str]:
    """Say that there is no default storage class."""
    if not any(c["metadata"].get("annotations", {}).get(DEFAULT_CLASS) == "true" for c in classes):
        yield (
            "there is no default storage class, and the models' store is claimed from it; make one the default:\n"
            f"  kubectl annotate storageclass NAME {DEFAULT_CLASS}=true"
        )


def nodes_without_images(nodes: Sequence[Json], images: Sequence[str]) -> list[str]:
    """Name the GPU nodes that don't report all of the images; a node reports its largest images only."""
    return [
        node["metadata"]["name"]
        for node in nodes
        if _gpus(node)
        and not set(images) <= {name for image in node["status"].get("images", ()) for name in image.get("names", ())}
    ]


def _gpus(node: Json) -> int:
    if node["metadata"].get("labels", {}).get(PRODUCT_LABEL) != PRODUCT:
        return 0
    return int(node["status"].get("allocatable", {}).get(GPU, "0"))


def _address_problems(address: str) -> Iterator[str]:
    try:
        family = socket.AF_INET6 if ip_address(address).version == 6 else socket.AF_INET
        with socket.create_server((address, 0), family=family):
            return
    except (ValueError, OSError) as error:
        yield f"ADDRESS {address}: {error}; give an address of this machine that the cluster's pods reach (not a name)"


def _present(cluster: ExistingCluster, namespace: str) -> Iterator[str]:
    """Say what the demo would create and later remove, but is there, and any operator: it belongs to somebody else."""
    names = ("namespace", OPERATOR_NAMESPACE, namespace, "--ignore-not-found")
    operators = (OPERATOR_KINDS, "--all-namespaces", f"--selector={OPERATOR_LABEL}")
    found = [name for what in (names, operators) for name in cluster.kubectl("get", *what, "--output=name").split()]
    if found:
        yield (
            f"{', '.join(found)}: there already, by an installed operator or by a demo that was killed; "
            "the demo installs its own. If nothing of it is needed:\n"
            f"  kubectl delete speculativemodels --all --namespace={namespace}\n"
            f"  helm uninstall {CHART_NAME} --namespace={OPERATOR_NAMESPACE}   # one that came by Helm; else:\n"
            "  kubectl delete --ignore-not-found --filename=manifests/operator.yaml\n"
            f"  kubectl delete namespace {namespace} {OPERATOR_NAMESPACE} --ignore-not-found"
        )

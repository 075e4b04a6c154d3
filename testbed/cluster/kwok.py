"""Nodes with GPUs that nobody has: kwok plays them and their pods, as `stages.yaml` tells it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.cluster.processes import Program, wait_until

if TYPE_CHECKING:
    from testbed.cluster.api import ApiClient, Json
    from testbed.cluster.processes import Programs

STAGES = Path(__file__).parent / "stages.yaml"
NODE_ANNOTATION = "kwok.x-k8s.io/node"
TERMINATION_MESSAGE_ANNOTATION = "specdec-testbed/termination-message"
EXIT_CODE_ANNOTATION = "specdec-testbed/exit-code"
NEVER_READY_ANNOTATION = "specdec-testbed/never-ready"
INIT_EXIT_CODE_ANNOTATION = "specdec-testbed/init-exit-code"
INIT_MESSAGE_ANNOTATION = "specdec-testbed/init-message"
READY_SECONDS = 30.0


@dataclass(frozen=True)
class KwokNodes:
    """Like nodes to declare.

    Attributes:
        prefix: node names are `<prefix>-<number>`, from 0.
        count: how many.
        gpus: `nvidia.com/gpu` of each.
        product: value of each node's label `nvidia.com/gpu.product`.
        driver: value of each node's label `nvidia.com/cuda.driver-version.full`.
    """

    prefix: str = "gpu-node"
    count: int = 2
    gpus: int = 8
    product: str = "NVIDIA-H100-80GB-HBM3"
    driver: str = "580.105.08"

    def names(self) -> tuple[str, ...]:
        """Name the nodes."""
        return tuple(f"{self.prefix}-{number}" for number in range(self.count))


def kwok_program(kwok: Path, *, kubeconfig: Path) -> Program:
    """Return the kwok program; it leaves alone every node that isn't annotated as its own."""
    return Program(
        name="kwok",
        argv=(
            str(kwok),
            f"--kubeconfig={kubeconfig}",
            f"--config={STAGES}",
            "--manage-all-nodes=false",
            f"--manage-nodes-with-annotation-selector={NODE_ANNOTATION}=fake",
        ),
    )


def add_nodes(client: ApiClient, nodes: KwokNodes, *, programs: Programs) -> None:
    """Create the nodes and wait until all are Ready.

    Raises:
        NotReadyError: a node did not become Ready.
    """
    for name in nodes.names():
        client.create("/api/v1/nodes", node_object(name, nodes))
    for name in nodes.names():
        wait_until(
            lambda path=f"/api/v1/nodes/{name}": is_ready(client.get(path)),  # type: ignore[misc]
            what=f"node {name} Ready",
            seconds=READY_SECONDS,
            programs=programs,
        )


def node_object(name: str, nodes: KwokNodes) -> Json:
    """Return the Node object of one of the nodes."""
    resources = {
        "cpu": "128",
        "memory": "2Ti",
        "ephemeral-storage": "10Ti",
        "pods": "10000",
        "nvidia.com/gpu": str(nodes.gpus),
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {NODE_ANNOTATION: "fake"},
            "labels": {
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "nvidia.com/cuda.driver-version.full": nodes.driver,
                "nvidia.com/gpu.count": str(nodes.gpus),
                "nvidia.com/gpu.product": nodes.product,
                "type": "kwok",
            },
        },
        "status": {"capacity": resources, "allocatable": resources},
    }


def is_ready(node: Json) -> bool:
    """Whether a Node object says that it is Ready and takes pods."""
    conditions = node.get("status", {}).get("conditions", [])
    ready = any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
    return ready and not node["spec"].get("taints")

"""A real node on this machine: containerd, kubelet, kube-proxy and DNS, with GPUs that are only declared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from testbed.cluster.containerd import Containerd
from testbed.cluster.dns import dns_program, dns_ready
from testbed.cluster.images import BUSYBOX_IMAGE, write_busybox_image
from testbed.cluster.kubelet import Kubelet, proxy_program
from testbed.cluster.kwok import is_ready
from testbed.cluster.namespaces import Namespaces
from testbed.cluster.network import connect, write_pod_network
from testbed.cluster.processes import wait_until
from testbed.cluster.volumes import add_volumes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from testbed.cluster.control_plane import ControlPlane, Users
    from testbed.cluster.network import NodeNetwork
    from testbed.cluster.processes import Programs
    from testbed.cluster.requirements import NodePrograms

NODE_NAME = "testbed-node"
READY_SECONDS = 60.0
GPU_POINTER = "nvidia.com~1gpu"


@dataclass(frozen=True)
class RealNode:
    """The real node of a cluster.

    Attributes:
        gpus: its declared `nvidia.com/gpu`; the machine needs none.
        product: value of its label `nvidia.com/gpu.product`.
        driver: value of its label `nvidia.com/cuda.driver-version.full`.
        images: image archives (OCI or Docker) to import; pods find them by the name inside, and never pull.
        volumes: how many PersistentVolumes of each access mode to have ready.
    """

    gpus: int = 8
    product: str = "NVIDIA-H100-80GB-HBM3"
    driver: str = "580.105.08"
    images: Sequence[Path] = ()
    volumes: int = 32


@dataclass(frozen=True)
class RunningNode:
    """A real node that runs.

    Attributes:
        name: its name in the cluster.
        address: its address, reachable from this machine.
        namespaces: where it lives.
        containerd: its container runtime.
    """

    name: str
    address: str
    namespaces: Namespaces
    containerd: Containerd

    def import_image(self, archive: Path) -> None:
        """Import an image archive (OCI or Docker); pods find it by the name written inside it.

        Raises:
            CommandError: containerd refuses it.
        """
        self.containerd.import_image(archive, self.namespaces)

    def tag_image(self, image: str, name: str) -> None:
        """Give an image that the node holds a further name.

        Raises:
            CommandError: there is none, or the name is taken.
        """
        self.containerd.tag_image(image, name, self.namespaces)

    def kill_container(self, container: str) -> None:
        """End a container's process at once (SIGKILL); the kubelet deals with it as with any that ended.

        Args:
            container: its id, as a pod's status has it behind `containerd://`.

        Raises:
            CommandError: there is none, or it does not run.
        """
        self.containerd.kill(container, self.namespaces)


@dataclass(frozen=True)
class NodeStarter:
    """What a real node is started with.

    Attributes:
        options: the node.
        directory: the cluster's folder.
        cgroup: name of the node's control group.
        network: its addresses.
        binaries: paths of its programs by name.
        system: the machine's own programs.
        programs: the cluster's running programs.
    """

    options: RealNode
    directory: Path
    cgroup: str
    network: NodeNetwork
    binaries: Mapping[str, Path]
    system: NodePrograms
    programs: Programs

    def prepare(self) -> Namespaces:
        """Make the node's namespaces and connect them, so that the API server can take its address.

        Raises:
            CommandError: the machine refuses an interface or a route.
            NotReadyError: the namespaces were not ready in time.
        """
        namespaces = Namespaces.start(self.directory, programs=self.programs)
        connect(self.network, namespaces)
        return namespaces

    def start(self, control_plane: ControlPlane, users: Users, namespaces: Namespaces) -> RunningNode:
        """Start the node's programs and wait until it is Ready, with its GPUs, volumes and DNS.

        Raises:
            NotReadyError: the node or its DNS was not ready in time.
            ProgramError: one of its programs ended.
        """
        containerd = self._start_containerd(namespaces)
        for program in (
            self._kubelet(control_plane.kubeconfig(users.node)).prepare(namespaces, self.network),
            proxy_program(
                self.binaries["kube-proxy"],
                kubeconfig=control_plane.kubeconfig(users.proxy),
                node=NODE_NAME,
                network=self.network,
                namespaces=namespaces,
            ),
            dns_program(
                self.binaries["coredns"],
                directory=self.directory,
                kubeconfig=control_plane.kubeconfig(users.dns),
                address=self.network.node,
                namespaces=namespaces,
            ),
        ):
            self.programs.start(program)
        self._finish(control_plane)
        return RunningNode(name=NODE_NAME, address=str(self.network.node), namespaces=namespaces, containerd=containerd)

    def _start_containerd(self, namespaces: Namespaces) -> Containerd:
        containerd = Containerd(
            directory=self.directory / "containerd",
            program=self.binaries["containerd"],
            ctr=self.binaries["ctr"],
            runc=self.system.runc,
            plugins=self.system.plugins,
            pause_image=BUSYBOX_IMAGE,
        )
        write_pod_network(containerd.network_directory / "pods.conflist", self.network)
        containerd.start(namespaces, programs=self.programs)
        pause = self.directory / "busybox.tar"
        write_busybox_image(pause, busybox=self.system.busybox)
        for archive in (pause, *self.options.images):
            containerd.import_image(archive, namespaces)
        return containerd

    def _kubelet(self, kubeconfig: Path) -> Kubelet:
        return Kubelet(
            program=self.binaries["kubelet"],
            directory=self.directory,
            kubeconfig=kubeconfig,
            node=NODE_NAME,
            labels={
                "nvidia.com/cuda.driver-version.full": self.options.driver,
                "nvidia.com/gpu.count": str(self.options.gpus),
                "nvidia.com/gpu.product": self.options.product,
            },
            cgroup=self.cgroup,
        )

    def _finish(self, control_plane: ControlPlane) -> None:
        client, path = control_plane.client, f"/api/v1/nodes/{NODE_NAME}"
        wait_until(
            lambda: client.exists(path) and is_ready(client.get(path)),
            what=f"node {NODE_NAME} (a firewall on this machine must let in what comes from {self.network.link})",
            seconds=READY_SECONDS,
            programs=self.programs,
        )
        # The kubelet keeps a resource that it doesn't know of, and the scheduler counts it.
        patch = [
            {"op": "add", "path": f"/status/{field}/{GPU_POINTER}", "value": str(self.options.gpus)}
            for field in ("capacity", "allocatable")
        ]
        client.patch(f"{path}/status", patch)
        volumes = self.directory / "volumes"
        add_volumes(client, directory=volumes, node=NODE_NAME, count=self.options.volumes)
        wait_until(
            lambda: dns_ready(self.network.node),
            what="the cluster's DNS",
            seconds=READY_SECONDS,
            programs=self.programs,
        )

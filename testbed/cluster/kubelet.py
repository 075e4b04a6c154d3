"""kubelet and kube-proxy on a real node."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from testbed.cluster.containerd import SOCKET
from testbed.cluster.keys import ServingCertificate
from testbed.cluster.namespaces import KUBELET_DIRECTORY

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from testbed.cluster.api import Json
    from testbed.cluster.namespaces import Namespaces
    from testbed.cluster.network import NodeNetwork
    from testbed.cluster.processes import Program


@dataclass(frozen=True)
class Kubelet:
    """The kubelet of one node.

    Attributes:
        program: path of `kubelet`.
        directory: folder for its configuration.
        kubeconfig: of the node's user.
        node: name of the node.
        labels: labels of the node.
        cgroup: control group below which the pods' groups are made.
    """

    program: Path
    directory: Path
    kubeconfig: Path
    node: str
    labels: Mapping[str, str]
    cgroup: str

    def prepare(self, namespaces: Namespaces, network: NodeNetwork) -> Program:
        """Write its configuration and its certificate, and return the program."""
        keys = self.directory / "kubelet" / "pki"
        ServingCertificate.new(addresses=[str(network.node)]).write(keys / "kubelet.crt", keys / "kubelet.key")
        resolver = self.directory / "resolv.conf"
        resolver.write_text(f"nameserver {network.node}\n", encoding="utf-8")
        configuration = self.directory / "kubelet.json"
        content = self.configuration(address=str(network.node), resolver=resolver)
        configuration.write_text(json.dumps(content, indent=2), encoding="utf-8")
        argv = (
            str(self.program),
            f"--config={configuration}",
            f"--kubeconfig={self.kubeconfig}",
            f"--root-dir={KUBELET_DIRECTORY}",
            f"--cert-dir={KUBELET_DIRECTORY / 'pki'}",
            f"--hostname-override={self.node}",
            f"--node-ip={network.node}",
            f"--node-labels={','.join(f'{key}={value}' for key, value in self.labels.items())}",
            # Nobody asks for the containers' statistics, and two cores feel who collects them.
            "--housekeeping-interval=60s",
        )
        return namespaces.program("kubelet", argv)

    def configuration(self, *, address: str, resolver: Path) -> Json:
        """Return the KubeletConfiguration; `address` is the node's, where the cluster's DNS listens too."""
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": address,
            # Only this machine and the pods have a route here, and the API server has no certificate to show.
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{self.cgroup}",
            "clusterDNS": [address],
            "clusterDomain": "cluster.local",
            "containerRuntimeEndpoint": f"unix://{SOCKET}",
            # What a container waits for is there soon here: no need to wait up to minutes for its next start.
            "crashLoopBackOff": {"maxContainerRestartPeriod": "10s"},
            "enforceNodeAllocatable": [],
            # Images come from archives and can't be pulled again: the kubelet must never make room by deleting one.
            "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
            "imageGCHighThresholdPercent": 100,
            "imageGCLowThresholdPercent": 99,
            "failCgroupV1": False,
            "failSwapOn": False,
            "featureGates": {"KubeletCrashLoopBackOffMax": True},
            "kubeAPIBurst": 2000,
            "kubeAPIQPS": 1000,
            "readOnlyPort": 0,
            "resolvConf": str(resolver),
            "syncFrequency": "10s",
            "volumePluginDir": str(self.directory / "volume-plugins"),
        }


def proxy_program(proxy: Path, *, kubeconfig: Path, node: str, network: NodeNetwork, namespaces: Namespaces) -> Program:
    """Return kube-proxy, with the machine-wide limits of connection tracking left alone."""
    argv = (
        str(proxy),
        f"--kubeconfig={kubeconfig}",
        f"--hostname-override={node}",
        "--proxy-mode=iptables",
        f"--cluster-cidr={network.pods}",
        "--conntrack-max-per-core=0",
        "--conntrack-tcp-timeout-established=0",
        "--conntrack-tcp-timeout-close-wait=0",
    )
    return namespaces.program("kube-proxy", argv)

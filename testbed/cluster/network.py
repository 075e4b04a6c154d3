"""The network of a real node: one link to the host, addresses of its own, routes to its pods and Services.

All else (pods' interfaces, kube-proxy's rules) is inside the node's network namespace and ends with it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from typing import TYPE_CHECKING

from testbed.cluster.commands import run
from testbed.cluster.errors import CommandError, RealNodeUnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from testbed.cluster.namespaces import Namespaces

# Each cluster takes one /16 of these.
POOL = IPv4Network("10.64.0.0/10")
NODE_INTERFACE = "eth0"


@dataclass(frozen=True)
class NodeNetwork:
    """The addresses of one cluster with a real node.

    Attributes:
        block: all its addresses.
        link: the host's network interface that leads to the node.
    """

    block: IPv4Network
    link: str

    @property
    def host(self) -> IPv4Address:
        """The host's address on the link; the API server listens here."""
        return self.block[1]

    @property
    def node(self) -> IPv4Address:
        """The node's address on the link."""
        return self.block[2]

    @property
    def services(self) -> IPv4Network:
        """The range of ClusterIPs."""
        return list(self.block.subnets(prefixlen_diff=2))[1]

    @property
    def pods(self) -> IPv4Network:
        """The range of the pods' addresses."""
        return list(self.block.subnets(prefixlen_diff=1))[1]


def free_block(taken: Iterable[IPv4Network]) -> IPv4Network:
    """Return the first block that overlaps none of the networks taken.

    Raises:
        RealNodeUnavailableError: all are taken.
    """
    networks = list(taken)
    for block in POOL.subnets(new_prefix=16):
        if not any(block.overlaps(network) for network in networks):
            return block
    raise RealNodeUnavailableError(
        f"this machine has routes into every /16 of {POOL}; stop other clusters, or remove routes"
    )


def routed_networks(routes: str) -> list[IPv4Network]:
    """Return the destinations in the output of `ip -json route`, without the default route."""
    destinations = (route["dst"] for route in json.loads(routes))
    return [IPv4Network(to, strict=False) for to in destinations if to[0].isdigit()]


def take_network(link: str) -> NodeNetwork:
    """Make the host's end of a link with a block that is free; the other end waits on the host.

    The caller holds the lock under which clusters register.
    """
    taken = routed_networks(run(("ip", "-4", "-json", "route", "show", "table", "all")))
    network = NodeNetwork(block=free_block(taken), link=link)
    run(("ip", "link", "add", link, "type", "veth", "peer", "name", f"{link}n"))
    run(("ip", "address", "add", f"{network.host}/30", "dev", link))
    run(("ip", "link", "set", link, "up"))
    return network


def connect(network: NodeNetwork, namespaces: Namespaces) -> None:
    """Move the link's other end into the node, give it its address, and route pods and Services to it."""
    run(("ip", "link", "set", f"{network.link}n", "netns", str(namespaces.holder), "name", NODE_INTERFACE))
    namespaces.run(("ip", "address", "add", f"{network.node}/30", "dev", NODE_INTERFACE))
    for interface in ("lo", NODE_INTERFACE):
        namespaces.run(("ip", "link", "set", interface, "up"))
    namespaces.run(("ip", "route", "add", "default", "via", str(network.host)))
    # A ClusterIP that kube-proxy doesn't know yet: say so at once, instead of letting a connection hang in retries.
    namespaces.run(("iptables", "-A", "FORWARD", "-d", str(network.services), "-j", "REJECT"))
    for destination in (network.pods, network.services):
        run(("ip", "route", "add", str(destination), "via", str(network.node), "dev", network.link))


def remove_link(link: str) -> None:
    """Remove the link, if it is there, and with it its routes.

    Raises:
        CommandError: it is there and can't be removed.
    """
    try:
        run(("ip", "link", "delete", link))
    except CommandError as error:
        if "Cannot find device" not in str(error):
            raise


def write_pod_network(path: Path, network: NodeNetwork) -> None:
    """Write the CNI configuration: each pod is linked to the node and routed, so Services work between all."""
    plugins = [
        {
            "type": "ptp",
            "ipMasq": True,
            "ipam": {
                "type": "host-local",
                "ranges": [[{"subnet": str(network.pods)}]],
                "routes": [{"dst": "0.0.0.0/0"}],
                "dataDir": "/run/cni",
            },
        },
        {"type": "portmap", "capabilities": {"portMappings": True}},
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"cniVersion": "1.0.0", "name": "pods", "plugins": plugins}
    path.write_text(json.dumps(content, indent=2), encoding="utf-8")

"""CoreDNS, the cluster's DNS, on the node's own address."""

from __future__ import annotations

import urllib.request
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ipaddress import IPv4Address
    from pathlib import Path

    from testbed.cluster.namespaces import Namespaces
    from testbed.cluster.processes import Program

READY_PORT = 8181


def dns_program(
    coredns: Path, *, directory: Path, kubeconfig: Path, address: IPv4Address, namespaces: Namespaces
) -> Program:
    """Write the Corefile and return the program."""
    corefile = directory / "Corefile"
    corefile.write_text(corefile_text(kubeconfig=kubeconfig, address=address), encoding="utf-8")
    return namespaces.program("coredns", (str(coredns), "-conf", str(corefile)))


def corefile_text(*, kubeconfig: Path, address: IPv4Address) -> str:
    """Return the Corefile: the cluster's names are answered, and all others don't exist."""
    return f"""\
cluster.local:53 in-addr.arpa:53 {{
    bind {address}
    errors
    ready {address}:{READY_PORT}
    kubernetes cluster.local in-addr.arpa {{
        kubeconfig {kubeconfig}
        ttl 5
    }}
}}
.:53 {{
    bind {address}
    errors
    template ANY ANY {{
        rcode NXDOMAIN
    }}
}}
"""


def dns_ready(address: IPv4Address) -> bool:
    """Whether CoreDNS has read the cluster's Services."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"http://{address}:{READY_PORT}/ready", timeout=2):
            return True
    except OSError:
        return False

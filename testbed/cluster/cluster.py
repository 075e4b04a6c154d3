"""What a cluster is started with, and what it is while it runs."""

from __future__ import annotations

import os
import re
import secrets
import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from testbed.cluster.commands import SHORT_LIVED
from testbed.cluster.errors import CommandError
from testbed.cluster.kubeconfig import Endpoint, Impersonation, write_kubeconfig
from testbed.cluster.kwok import KwokNodes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from testbed.cluster.api import ApiClient
    from testbed.cluster.node import RealNode, RunningNode

TOKEN_SECONDS = 86_400


@dataclass(frozen=True)
class ClusterOptions:
    """What cluster to start.

    Attributes:
        name: its name, up to 20 lower-case letters, digits and dashes; a new one by default.
        kwok_nodes: nodes that kwok plays, or None.
        real_node: the real node, or None; needs root.
        node_monitor_grace_seconds: for how long a node may be silent before its pods count as lost. The default
            keeps a loaded machine from losing pods; a test of lost nodes sets its own.
    """

    name: str = field(default_factory=lambda: f"t-{secrets.token_hex(4)}")
    kwok_nodes: KwokNodes | None = field(default_factory=KwokNodes)
    real_node: RealNode | None = None
    node_monitor_grace_seconds: int = 3600


@dataclass(frozen=True)
class Cluster:
    """A running cluster.

    Attributes:
        name: its name.
        directory: its folder; gone when it stops.
        kubeconfig: the administrator's.
        client: requests to the API server as the administrator.
        binaries: paths of its programs by name, `kubectl` among them.
        host_address: an address of this machine; the one at which pods reach it, if there is a real node.
        node: the real node, if there is one.
    """

    name: str
    directory: Path
    kubeconfig: Path
    client: ApiClient
    binaries: Mapping[str, Path]
    host_address: str
    node: RunningNode | None

    @property
    def server(self) -> str:
        """URL of the API server."""
        return self.client.server

    @property
    def kubectl_program(self) -> Path:
        """The kubectl that is used."""
        return self.binaries["kubectl"]

    @property
    def ca_file(self) -> Path:
        """PEM file that verifies the API server."""
        return self.client.ca_file

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Run kubectl as the administrator and return what it prints.

        Raises:
            CommandError: with its error output.
        """
        argv = [str(self.kubectl_program), f"--kubeconfig={self.kubeconfig}", *arguments]
        cache = {"KUBECACHEDIR": str(self.directory / "kubectl-cache")}
        environment = os.environ | SHORT_LIVED | cache | {"NO_PROXY": "*"}
        finished = subprocess.run(argv, input=stdin or "", capture_output=True, text=True, check=False, env=environment)
        if finished.returncode != 0:
            raise CommandError(f"kubectl {' '.join(arguments)}: {finished.stderr.strip()}")
        return finished.stdout

    def kubeconfig_as(self, *, user: str, groups: Sequence[str] = ()) -> Path:
        """Write a kubeconfig that acts as any user, by impersonation (kubectl and client-go know it)."""
        return write_kubeconfig(
            self._kubeconfig_path(f"user-{user}"),
            endpoint=self._endpoint,
            token=self.client.token,
            impersonation=Impersonation(user=user, groups=groups),
        )

    def kubeconfig_for_service_account(self, *, namespace: str, name: str) -> Path:
        """Write a kubeconfig with a day's token of a service account; any client knows how to use it.

        Raises:
            ApiError: there is no such service account.
        """
        answer = self.client.create(
            f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token",
            {
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenRequest",
                "spec": {"expirationSeconds": TOKEN_SECONDS},
            },
        )
        path = self._kubeconfig_path(f"serviceaccount-{namespace}-{name}")
        return write_kubeconfig(path, endpoint=self._endpoint, token=answer["status"]["token"])

    @property
    def _endpoint(self) -> Endpoint:
        return Endpoint(cluster=self.name, server=self.server, ca_file=self.ca_file)

    def _kubeconfig_path(self, name: str) -> Path:
        return self.directory / "kubeconfigs" / f"{re.sub(r'[^A-Za-z0-9.-]', '-', name)}.yaml"

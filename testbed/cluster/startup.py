"""Starting the parts of a cluster in their order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from testbed.cluster import cgroups
from testbed.cluster.cluster import Cluster
from testbed.cluster.control_plane import LOOPBACK, ControlPlane, ControlPlaneSettings
from testbed.cluster.kwok import add_nodes, kwok_program
from testbed.cluster.network import NodeNetwork, take_network
from testbed.cluster.node import NodeStarter

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from testbed.cluster.cluster import ClusterOptions
    from testbed.cluster.control_plane import Users
    from testbed.cluster.node import RealNode, RunningNode
    from testbed.cluster.processes import Programs
    from testbed.cluster.requirements import NodePrograms
    from testbed.cluster.state import ClusterRecord, NodeRecord

# ClusterIPs without a real node: nothing routes them. Loopback addresses refuse at once; others might be answered by
# whatever routes the packets of this machine.
SERVICE_CIDR = "127.96.0.0/16"


@dataclass(frozen=True)
class Startup:
    """One cluster, to be started.

    Attributes:
        options: what is asked for.
        record: the cluster, as it is known on disk.
        binaries: paths of its programs by name.
        programs: its running programs, as they come.
        users: the users that it is started with.
    """

    options: ClusterOptions
    record: ClusterRecord
    binaries: Mapping[str, Path]
    programs: Programs
    users: Users

    def without_node(self) -> Cluster:
        """Start the control plane and kwok's nodes.

        Raises:
            NotReadyError: something did not start in time.
            ProgramError: a program ended.
        """
        control_plane = self._control_plane(address=LOOPBACK, service_cidr=SERVICE_CIDR)
        return self._finished(control_plane, node=None)

    def with_node(
        self, options: RealNode, *, names: NodeRecord, system: NodePrograms, lock: AbstractContextManager[None]
    ) -> Cluster:
        """Start the control plane, a real node and kwok's nodes.

        Args:
            options: the real node.
            names: what it is called in the system.
            system: the machine's own programs.
            lock: held while a free network is looked for and taken.

        Raises:
            CommandError: the machine refuses an interface, a route or an image.
            NotReadyError: something did not start in time.
            ProgramError: a program ended.
        """
        with lock:
            network = take_network(names.link)
        cgroups.create(names.cgroup)
        starter = self._node_starter(options, names=names, system=system, network=network)
        namespaces = starter.prepare()
        # Pods call the API server too, so it listens where they reach it.
        control_plane = self._control_plane(address=str(network.host), service_cidr=str(network.services))
        return self._finished(control_plane, node=starter.start(control_plane, self.users, namespaces))

    def _node_starter(
        self, options: RealNode, *, names: NodeRecord, system: NodePrograms, network: NodeNetwork
    ) -> NodeStarter:
        return NodeStarter(
            options=options,
            directory=self.record.directory,
            cgroup=names.cgroup,
            network=network,
            binaries=self.binaries,
            system=system,
            programs=self.programs,
        )

    def _control_plane(self, *, address: str, service_cidr: str) -> ControlPlane:
        settings = ControlPlaneSettings(
            name=self.record.name,
            directory=self.record.directory,
            binaries=self.binaries,
            address=address,
            service_cidr=service_cidr,
            node_monitor_grace_seconds=self.options.node_monitor_grace_seconds,
        )
        control_plane = ControlPlane(settings, self.users, programs=self.programs)
        control_plane.start()
        return control_plane

    def _finished(self, control_plane: ControlPlane, *, node: RunningNode | None) -> Cluster:
        kubeconfig = control_plane.kubeconfig(self.users.admin)
        if self.options.kwok_nodes is not None:
            self.programs.start(kwok_program(self.binaries["kwok"], kubeconfig=kubeconfig))
            add_nodes(control_plane.client, self.options.kwok_nodes, programs=self.programs)
        return Cluster(
            name=self.record.name,
            directory=self.record.directory,
            kubeconfig=kubeconfig,
            client=control_plane.client,
            binaries=self.binaries,
            host_address=control_plane.address,
            node=node,
        )

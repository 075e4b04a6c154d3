"""The one way to get a cluster: `with running_cluster(options, progress=…) as cluster`."""

from __future__ import annotations

import os
import re
import signal
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from testbed.cluster import cgroups
from testbed.cluster.binaries import Builder
from testbed.cluster.cache import cache_directory, clusters_directory, exclusive
from testbed.cluster.cluster import Cluster
from testbed.cluster.control_plane import LOOPBACK, ControlPlane, ControlPlaneSettings, Users
from testbed.cluster.errors import ClusterNameError
from testbed.cluster.kwok import add_nodes, kwok_program
from testbed.cluster.network import take_network
from testbed.cluster.node import NODE_NAME, NodeStarter
from testbed.cluster.processes import Programs
from testbed.cluster.requirements import require_node_programs
from testbed.cluster.state import ClusterRecord, NodeRecord, this_process
from testbed.cluster.sweep import sweep, sweep_dead
from testbed.cluster.tools import CONTROL_PLANE, NODE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from testbed.cluster.cluster import ClusterOptions
    from testbed.cluster.node import RealNode, RunningNode
    from testbed.cluster.progress import Progress
    from testbed.cluster.requirements import NodePrograms

NAME_PATTERN = re.compile(r"[a-z0-9]([a-z0-9-]{0,18}[a-z0-9])?")
# ClusterIPs without a real node: nothing routes them.
SERVICE_CIDR = "10.96.0.0/12"


@contextmanager
def running_cluster(options: ClusterOptions, *, progress: Progress) -> Iterator[Cluster]:
    """Start a cluster, and stop it when the body ends, however it ends.

    Builds the binaries if they are missing, and first sweeps what clusters of dead owners left.

    Raises:
        BuildError: a binary could not be built.
        ClusterNameError: the name can't be one, or a cluster of this name is running.
        NotReadyError: something did not start in time.
        ProgramError: a program ended while it started.
        RealNodeUnavailableError: a real node is asked for, and this machine can't carry it.
    """
    system = require_node_programs(progress) if options.real_node is not None else None
    tools = [*CONTROL_PLANE, *(NODE if options.real_node is not None else ())]
    builder = Builder(cache=cache_directory(), environment=os.environ, progress=progress)
    binaries = builder.ensure(tools)
    record = _register(options, progress=progress)
    programs = Programs(record.directory)
    try:
        start = _Start(
            options=options,
            record=record,
            binaries=binaries,
            programs=programs,
            users=Users.new(node=NODE_NAME),
        )
        with progress.step(f"start cluster {record.name}"):
            if options.real_node is None or record.node is None or system is None:
                cluster = start.without_node()
            else:
                cluster = start.with_node(options.real_node, names=record.node, system=system)
        yield cluster
    finally:
        with _uninterrupted(), progress.step(f"stop cluster {record.name}"):
            programs.stop()
            sweep(record)


def _register(options: ClusterOptions, *, progress: Progress) -> ClusterRecord:
    if NAME_PATTERN.fullmatch(options.name) is None:
        raise ClusterNameError(f"cluster name {options.name!r}: use up to 20 lower-case letters, digits and dashes")
    with exclusive(_registry_lock()):
        sweep_dead(clusters_directory(), progress=progress)
        directory = clusters_directory() / options.name
        if ClusterRecord.read(directory) is not None:
            raise ClusterNameError(f"cluster {options.name} is running; stop it or choose another name")
        directory.mkdir(parents=True, exist_ok=True)
        node = NodeRecord.of(directory) if options.real_node is not None else None
        record = ClusterRecord(name=options.name, directory=directory, owner=this_process(), node=node)
        record.write()
    return record


def clean(*, progress: Progress) -> None:
    """Sweep what clusters of dead owners left."""
    with exclusive(_registry_lock()):
        sweep_dead(clusters_directory(), progress=progress)


def _registry_lock() -> Path:
    return clusters_directory() / ".lock"


@dataclass(frozen=True)
class _Start:
    """Starts the parts of one cluster in their order."""

    options: ClusterOptions
    record: ClusterRecord
    binaries: Mapping[str, Path]
    programs: Programs
    users: Users

    def without_node(self) -> Cluster:
        control_plane = self._control_plane(address=LOOPBACK, service_cidr=SERVICE_CIDR)
        return self._finished(control_plane, node=None)

    def with_node(self, options: RealNode, *, names: NodeRecord, system: NodePrograms) -> Cluster:
        with exclusive(_registry_lock()):
            network = take_network(names.link)
        cgroups.create(names.cgroup)
        starter = NodeStarter(
            options=options,
            directory=self.record.directory,
            cgroup=names.cgroup,
            network=network,
            binaries=self.binaries,
            system=system,
            programs=self.programs,
        )
        namespaces = starter.prepare()
        # Pods call the API server too, so it listens where they reach it.
        control_plane = self._control_plane(address=str(network.host), service_cidr=str(network.services))
        return self._finished(control_plane, node=starter.start(control_plane, self.users, namespaces))

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


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let no second Ctrl-C cut the clean-up short; every step of it has a deadline."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)

"""The one way to get a cluster: `with running_cluster(options, progress=…) as cluster`."""

from __future__ import annotations

import os
import re
import secrets
import signal
import subprocess
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from testbed.cluster.binaries import Builder
from testbed.cluster.cache import cache_directory, clusters_directory, exclusive
from testbed.cluster.control_plane import LOOPBACK, ControlPlane, ControlPlaneSettings, Users
from testbed.cluster.errors import ClusterNameError, CommandError, TestbedError
from testbed.cluster.kubeconfig import Endpoint, Impersonation, write_kubeconfig
from testbed.cluster.kwok import KwokNodes, add_nodes, kwok_program
from testbed.cluster.processes import Programs
from testbed.cluster.state import ClusterRecord, this_process
from testbed.cluster.sweep import sweep, sweep_dead
from testbed.cluster.tools import CONTROL_PLANE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from testbed.cluster.api import ApiClient
    from testbed.cluster.progress import Progress

NAME_PATTERN = re.compile(r"[a-z0-9]([a-z0-9-]{0,18}[a-z0-9])?")
SERVICE_CIDR = "10.96.0.0/12"
TOKEN_SECONDS = 86_400


@dataclass(frozen=True)
class ClusterOptions:
    """What cluster to start.

    Attributes:
        name: its name, up to 20 lower-case letters, digits and dashes; a new one if empty.
        kwok_nodes: nodes that kwok plays, or None.
        node_monitor_grace_seconds: for how long a node may be silent before its pods count as lost. The default
            keeps a loaded machine from losing pods; a test of lost nodes sets its own.
    """

    name: str = field(default_factory=lambda: f"t-{secrets.token_hex(4)}")
    kwok_nodes: KwokNodes | None = field(default_factory=KwokNodes)
    node_monitor_grace_seconds: int = 3600


@dataclass(frozen=True)
class Cluster:
    """A running cluster.

    Attributes:
        name: its name.
        directory: its folder; gone when it stops.
        kubeconfig: the administrator's.
        server: URL of the API server.
        ca_file: PEM file that verifies it.
        client: requests to it as the administrator.
        binaries: paths of its programs by name, `kubectl` among them.
        host_address: the address of this machine at which pods of a real node reach it.
    """

    name: str
    directory: Path
    kubeconfig: Path
    server: str
    ca_file: Path
    client: ApiClient
    binaries: Mapping[str, Path]
    host_address: str

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Run kubectl as the administrator and return what it prints.

        Raises:
            CommandError: with its error output.
        """
        argv = [str(self.binaries["kubectl"]), f"--kubeconfig={self.kubeconfig}", *arguments]
        environment = os.environ | {"KUBECACHEDIR": str(self.directory / "kubectl-cache")}
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


@contextmanager
def running_cluster(options: ClusterOptions, *, progress: Progress) -> Iterator[Cluster]:
    """Start a cluster, and stop it when the body ends, however it ends.

    Builds the binaries if they are missing, and first sweeps what clusters of dead owners left.

    Raises:
        BuildError: a binary could not be built.
        ClusterNameError: a cluster of this name is running.
        NotReadyError: something did not start in time.
        ProgramError: a program ended while it started.
    """
    binaries = Builder(cache=cache_directory(), environment=os.environ, progress=progress).ensure(CONTROL_PLANE)
    record = _register(options, progress=progress)
    programs = Programs(record.directory)
    try:
        with progress.step(f"start the control plane of cluster {record.name}"):
            cluster = _start(options, record=record, binaries=binaries, programs=programs)
        yield cluster
    finally:
        with _uninterrupted(), progress.step(f"stop cluster {record.name}"):
            programs.stop()
            sweep(record)


def _register(options: ClusterOptions, *, progress: Progress) -> ClusterRecord:
    if NAME_PATTERN.fullmatch(options.name) is None:
        raise TestbedError(f"cluster name {options.name!r}: use up to 20 lower-case letters, digits and dashes")
    clusters = clusters_directory()
    with exclusive(clusters / ".lock"):
        sweep_dead(clusters, progress=progress)
        directory = clusters / options.name
        if ClusterRecord.read(directory) is not None:
            raise ClusterNameError(f"cluster {options.name} is running; stop it or choose another name")
        directory.mkdir(parents=True, exist_ok=True)
        directory.chmod(0o755)
        record = ClusterRecord(name=options.name, directory=directory, owner=this_process())
        record.write()
    return record


def _start(
    options: ClusterOptions, *, record: ClusterRecord, binaries: Mapping[str, Path], programs: Programs
) -> Cluster:
    users = Users.new(node=record.name)
    settings = ControlPlaneSettings(
        name=record.name,
        directory=record.directory,
        binaries=binaries,
        address=LOOPBACK,
        service_cidr=SERVICE_CIDR,
        node_monitor_grace_seconds=options.node_monitor_grace_seconds,
    )
    control_plane = ControlPlane(settings, users, programs=programs)
    control_plane.start()
    kubeconfig = control_plane.kubeconfig(users.admin)
    if options.kwok_nodes is not None:
        programs.start(kwok_program(binaries["kwok"], kubeconfig=kubeconfig))
        add_nodes(control_plane.client, options.kwok_nodes, programs=programs)
    return Cluster(
        name=record.name,
        directory=record.directory,
        kubeconfig=kubeconfig,
        server=control_plane.endpoint.server,
        ca_file=control_plane.endpoint.ca_file,
        client=control_plane.client,
        binaries=binaries,
        host_address=settings.address,
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

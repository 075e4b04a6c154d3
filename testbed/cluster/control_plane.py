"""etcd, kube-apiserver, kube-controller-manager and kube-scheduler, on free ports of one address."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from ipaddress import IPv4Network
from typing import TYPE_CHECKING

from testbed.cluster.api import ApiClient
from testbed.cluster.keys import ServingCertificate, new_signing_key
from testbed.cluster.kubeconfig import Endpoint, write_kubeconfig
from testbed.cluster.ports import free_ports
from testbed.cluster.processes import Program, wait_until

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from testbed.cluster.processes import Programs

LOOPBACK = "127.0.0.1"
START_SECONDS = 60.0

# Twenty to fifty requests a second, the default of the controllers, is what tests at scale would measure.
CLIENT_LIMITS = ("--kube-api-qps=1000", "--kube-api-burst=2000")

# Controllers of what neither tests nor those who look around declare. Each keeps watches, which the API server feeds.
UNNEEDED_CONTROLLERS = (
    "certificatesigningrequest-approving-controller",
    "certificatesigningrequest-cleaner-controller",
    "certificatesigningrequest-signing-controller",
    "cloud-node-lifecycle-controller",
    "device-taint-eviction-controller",
    "endpointslice-mirroring-controller",
    "kube-apiserver-serving-clustertrustbundle-publisher-controller",
    "legacy-serviceaccount-token-cleaner-controller",
    "node-ipam-controller",
    "node-route-controller",
    "persistentvolume-attach-detach-controller",
    "persistentvolume-expander-controller",
    "podcertificaterequest-cleaner-controller",
    "podgroup-protection-controller",
    "resourcepoolstatusrequest-controller",
    "service-cidr-controller",
    "service-lb-controller",
    "storage-version-migrator-controller",
    "storageversion-garbage-collector-controller",
    "ttl-controller",
    "validatingadmissionpolicy-status-controller",
    "volumeattributesclass-protection-controller",
)


@dataclass(frozen=True)
class User:
    """A user of the API server, known by a token.

    Attributes:
        name: user name.
        group: the one group besides `system:authenticated`; "" for none.
        token: bearer token.
    """

    name: str
    group: str = ""
    token: str = field(default_factory=lambda: secrets.token_hex(16))


@dataclass(frozen=True)
class Users:
    """The users that a cluster is started with."""

    admin: User
    controller_manager: User
    scheduler: User
    node: User
    proxy: User
    dns: User

    @classmethod
    def new(cls, *, node: str) -> Users:
        """Make the users with fresh tokens; `node` is the name of the real node."""
        return cls(
            admin=User(name="testbed-admin", group="system:masters"),
            controller_manager=User(name="system:kube-controller-manager"),
            scheduler=User(name="system:kube-scheduler"),
            node=User(name=f"system:node:{node}", group="system:nodes"),
            proxy=User(name="system:kube-proxy"),
            dns=User(name="testbed-dns", group="system:masters"),
        )

    def token_file(self) -> str:
        """Return the content of `--token-auth-file`."""
        users = (self.admin, self.controller_manager, self.scheduler, self.node, self.proxy, self.dns)
        return "".join(f'{user.token},{user.name},{user.name},"{user.group}"\n' for user in users)


@dataclass(frozen=True)
class ControlPlaneSettings:
    """What a control plane is started with.

    Attributes:
        name: name of the cluster.
        directory: folder for its data, keys and logs.
        binaries: paths of its programs by name.
        address: the address that it listens on; pods reach it there too, if it is one that they can.
        service_cidr: range of the ClusterIPs.
        node_monitor_grace_seconds: for how long a node may be silent before its pods count as lost.
    """

    name: str
    directory: Path
    binaries: Mapping[str, Path]
    address: str
    service_cidr: str
    node_monitor_grace_seconds: int


class ControlPlane:
    """A control plane that is being started, or runs."""

    def __init__(self, settings: ControlPlaneSettings, users: Users, *, programs: Programs) -> None:
        self._settings = settings
        self._users = users
        self._programs = programs
        self._etcd_port, self._etcd_peer_port = free_ports(2, address=LOOPBACK)
        (self._port,) = free_ports(1, address=settings.address)

    @property
    def address(self) -> str:
        """The address that the API server listens on."""
        return self._settings.address

    @property
    def endpoint(self) -> Endpoint:
        """How to reach the API server."""
        return Endpoint(
            cluster=self._settings.name,
            server=f"https://{self._settings.address}:{self._port}",
            ca_file=self._certificates / "apiserver.crt",
        )

    @property
    def client(self) -> ApiClient:
        """Requests as the administrator."""
        endpoint = self.endpoint
        return ApiClient(server=endpoint.server, ca_file=endpoint.ca_file, token=self._users.admin.token)

    def start(self) -> None:
        """Start the programs and wait until namespaces get their default service account.

        Raises:
            NotReadyError: the API server or the controllers did not become ready.
            ProgramError: one of the programs ended.
        """
        directory = self._settings.directory
        self._certificate().write(self.endpoint.ca_file, self._certificates / "apiserver.key")
        (directory / "service-accounts.key").write_text(new_signing_key(), encoding="utf-8")
        (directory / "tokens.csv").write_text(self._users.token_file(), encoding="utf-8")
        self._programs.start(self._etcd())
        self._programs.start(self._api_server())
        wait_until(self._answers, what="the API server", seconds=START_SECONDS, programs=self._programs)
        self._programs.start(self._controller_manager())
        self._programs.start(self._scheduler())
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        wait_until(
            lambda: self.client.exists(account),
            what="the controllers",
            seconds=START_SECONDS,
            programs=self._programs,
        )

    def kubeconfig(self, user: User) -> Path:
        """Write a user's kubeconfig below the cluster's directory."""
        path = self._settings.directory / "kubeconfigs" / f"{user.name.replace(':', '-')}.yaml"
        return write_kubeconfig(path, endpoint=self.endpoint, token=user.token)

    @property
    def _certificates(self) -> Path:
        return self._settings.directory / "certificates"

    def _certificate(self) -> ServingCertificate:
        # Pods reach it by its Service, which has the first address of the range.
        service = next(IPv4Network(self._settings.service_cidr).hosts())
        names = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost")
        return ServingCertificate.new(addresses=(self._settings.address, str(service)), names=names)

    def _answers(self) -> bool:
        return self.client.ready()

    def _program(self, name: str, arguments: Sequence[str]) -> Program:
        return Program(name=name, argv=(str(self._settings.binaries[name]), *arguments))

    def _etcd(self) -> Program:
        clients = f"http://{LOOPBACK}:{self._etcd_port}"
        peers = f"http://{LOOPBACK}:{self._etcd_peer_port}"
        arguments = (
            f"--name={self._settings.name}",
            f"--data-dir={self._settings.directory / 'etcd'}",
            f"--listen-client-urls={clients}",
            f"--advertise-client-urls={clients}",
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster={self._settings.name}={peers}",
            "--unsafe-no-fsync",
            "--log-level=warn",
        )
        return self._program("etcd", arguments)

    def _api_server(self) -> Program:
        settings, key = self._settings, self._settings.directory / "service-accounts.key"
        # The address of loopback is none that an Endpoints object may hold; nobody outside could use it either.
        advertised = () if settings.address == LOOPBACK else (f"--advertise-address={settings.address}",)
        arguments = (
            f"--etcd-servers=http://{LOOPBACK}:{self._etcd_port}",
            f"--bind-address={settings.address}",
            *advertised,
            f"--secure-port={self._port}",
            f"--cert-dir={self._certificates}",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--token-auth-file={settings.directory / 'tokens.csv'}",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            f"--service-cluster-ip-range={settings.service_cidr}",
            "--allow-privileged=true",
            "--kubelet-preferred-address-types=InternalIP",
        )
        return self._program("kube-apiserver", arguments)

    def _controller_manager(self) -> Program:
        directory = self._settings.directory
        arguments = (
            f"--kubeconfig={self.kubeconfig(self._users.controller_manager)}",
            f"--service-account-private-key-file={directory / 'service-accounts.key'}",
            f"--root-ca-file={self.endpoint.ca_file}",
            "--use-service-account-credentials",
            "--leader-elect=false",
            "--secure-port=0",
            f"--controllers=*,{','.join(f'-{name}' for name in UNNEEDED_CONTROLLERS)}",
            f"--node-monitor-grace-period={self._settings.node_monitor_grace_seconds}s",
            "--concurrent-job-syncs=20",
            "--concurrent-deployment-syncs=20",
            "--concurrent-replicaset-syncs=20",
            "--concurrent-gc-syncs=20",
            *CLIENT_LIMITS,
        )
        return self._program("kube-controller-manager", arguments)

    def _scheduler(self) -> Program:
        arguments = (
            f"--kubeconfig={self.kubeconfig(self._users.scheduler)}",
            "--leader-elect=false",
            "--secure-port=0",
            *CLIENT_LIMITS,
        )
        return self._program("kube-scheduler", arguments)

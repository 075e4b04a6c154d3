"""What a real node needs of the machine; what is missing is installed where Debian's apt can."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.cluster.commands import run, search_path
from testbed.cluster.errors import CommandError, RealNodeUnavailableError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from testbed.cluster.progress import Progress

# Program and the Debian package that brings it. kube-proxy calls conntrack, the CNI plugins call iptables.
PROGRAMS: Mapping[str, str] = {
    "runc": "runc",
    "iptables": "iptables",
    "conntrack": "conntrack",
    "busybox": "busybox-static",
    "ip": "iproute2",
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "mount": "mount",
}
PLUGIN_PACKAGE = "containernetworking-plugins"
PLUGIN_DIRECTORIES = (Path("/usr/lib/cni"), Path("/opt/cni/bin"), Path("/usr/libexec/cni"))
# Named in every program that isn't static.
DYNAMIC_LOADER = b"/ld-linux"


@dataclass(frozen=True)
class NodePrograms:
    """The machine's own programs that a real node uses.

    Attributes:
        runc: the container runtime (Debian's, built with seccomp).
        busybox: a static busybox.
        plugins: folder of the CNI plugins.
    """

    runc: Path
    busybox: Path
    plugins: Path


def require_node_programs(progress: Progress) -> NodePrograms:
    """Return the machine's programs, having installed those that are missing.

    Raises:
        RealNodeUnavailableError: not Linux, not root, or something is missing that can't be installed.
    """
    if os.uname().sysname != "Linux" or os.geteuid() != 0:
        raise RealNodeUnavailableError(
            "a real node needs root on Linux; run as root, or go on with kwok nodes, or set KUBECONFIG and ADDRESS"
        )
    if packages := missing_packages():
        _install(packages, progress=progress)
    if packages := missing_packages():
        raise RealNodeUnavailableError(f"{', '.join(packages)}: installed, but not where they are looked for")
    plugins = _plugins()
    runc, busybox = _which("runc"), _which("busybox")
    if plugins is None or runc is None or busybox is None:
        raise RealNodeUnavailableError("the node's programs vanished while they were looked for; run it again")
    return NodePrograms(runc=runc, busybox=busybox, plugins=plugins)


def missing_packages() -> Sequence[str]:
    """Name the Debian packages of what is missing."""
    missing = {package for program, package in PROGRAMS.items() if _which(program) is None}
    busybox = _which("busybox")
    if busybox is not None and DYNAMIC_LOADER in busybox.read_bytes():
        missing.add(PROGRAMS["busybox"])
    if _plugins() is None:
        missing.add(PLUGIN_PACKAGE)
    return sorted(missing)


def _install(packages: Sequence[str], *, progress: Progress) -> None:
    if shutil.which("apt-get") is None:
        raise RealNodeUnavailableError(f"a real node needs (by their Debian names) {', '.join(packages)}")
    environment = {"DEBIAN_FRONTEND": "noninteractive"}
    with progress.step(f"install Debian packages: {', '.join(packages)}"):
        try:
            run(("apt-get", "update", "--quiet"), environment=environment)
            install = ("apt-get", "install", "--yes", "--quiet", "--no-install-recommends")
            run((*install, *packages), environment=environment)
        except CommandError as error:
            raise RealNodeUnavailableError(f"installing {', '.join(packages)} failed: {error}") from error


def _which(program: str) -> Path | None:
    found = shutil.which(program, path=search_path())
    return Path(found) if found else None


def _plugins() -> Path | None:
    wanted = ("ptp", "portmap", "host-local", "loopback")
    for folder in PLUGIN_DIRECTORIES:
        if all((folder / plugin).exists() for plugin in wanted):
            return folder
    return None

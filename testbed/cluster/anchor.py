"""The first process of a real node's namespaces. Run as a program of its own; imports nothing of the package.

Everything of the node lives in a mount, a network and a process namespace of its own: interfaces, iptables rules,
mounts and pods end with this process, even when nobody is left to undo them.

Usage: anchor.py DIRECTORY, inside the namespaces.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

# The kubelet sets these for the whole machine where they differ. Seeing what it wants, it changes nothing.
KUBELET_SYSCTLS = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}


def main() -> None:
    """Lay out the namespaces, say so by a file `anchored`, then reap orphans until killed."""
    directory = Path(sys.argv[1])
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    mount_private_folders(directory)
    shield_sysctls()
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1", encoding="ascii")
    (directory / "anchored").touch()
    while True:
        signal.sigwait({signal.SIGCHLD})
        reap()


def mount_private_folders(directory: Path) -> None:
    """Give the node its own version of the folders that kubelet, containerd and runc share with the machine."""
    mount("-t", "tmpfs", "-o", "mode=0755", "tmpfs", "/run")
    for own, shared in (("log", "/var/log"), ("kubelet", "/var/lib/kubelet")):
        (directory / own).mkdir()
        mount("--bind", str(directory / own), shared)


def shield_sysctls() -> None:
    """Cover the kernel's machine-wide settings that the kubelet would change."""
    for name, value in KUBELET_SYSCTLS.items():
        cover = Path("/run/sysctl") / name
        cover.parent.mkdir(parents=True, exist_ok=True)
        cover.write_text(f"{value}\n", encoding="ascii")
        mount("--bind", str(cover), f"/proc/sys/{name}")


def mount(*arguments: str) -> None:
    """Run mount."""
    subprocess.run(["mount", *arguments], check=True)


def reap() -> None:
    """Take the exit statuses of all that has ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


if __name__ == "__main__":
    main()

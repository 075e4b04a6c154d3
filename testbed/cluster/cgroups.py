"""The control group that a real node's pods live in, on hosts of either version."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from testbed.cluster.processes import wait_until

ROOT = Path("/sys/fs/cgroup")
REMOVE_SECONDS = 20.0
# What the kubelet and runc need below the group, where the host has version 2.
CONTROLLERS = ("cpu", "cpuset", "hugetlb", "io", "memory", "pids")
# All pods together weigh as much as this many busy threads outside: with the weight of one, which a group has
# otherwise, a server beside a build machine's work is held still for seconds, and Triton takes its models for dead.
BUSY_THREADS = 4
WEIGHTS = {"cpu.shares": 1024 * BUSY_THREADS, "cpu.weight": 100 * BUSY_THREADS}


def hierarchies(root: Path = ROOT) -> tuple[Path, ...]:
    """Return the mounted hierarchies: the one of version 2, or all of version 1."""
    if (root / "cgroup.controllers").exists():
        return (root,)
    folders = (folder for folder in sorted(root.iterdir()) if not folder.is_symlink())
    return tuple(folder for folder in folders if (folder / "cgroup.procs").exists())


def create(name: str, *, root: Path = ROOT) -> None:
    """Make the group in every hierarchy."""
    if (root / "cgroup.controllers").exists():
        available = (root / "cgroup.controllers").read_text(encoding="ascii").split()
        wanted = " ".join(f"+{controller}" for controller in CONTROLLERS if controller in available)
        (root / "cgroup.subtree_control").write_text(wanted, encoding="ascii")
    for hierarchy in hierarchies(root):
        group = hierarchy / name
        group.mkdir(exist_ok=True)
        # In version 1 a new group may run nowhere until it is told where.
        for limit in ("cpuset.cpus", "cpuset.mems"):
            if hierarchy != root and (group / limit).exists():
                (group / limit).write_text((hierarchy / limit).read_text(encoding="ascii"), encoding="ascii")
        for file, weight in WEIGHTS.items():
            if (group / file).exists():
                (group / file).write_text(str(weight), encoding="ascii")


def remove(name: str, *, root: Path = ROOT) -> None:
    """Remove the group and all below it; the kernel lets go of dead processes in its own time.

    Raises:
        NotReadyError: a group stays in use.
    """
    groups = [hierarchy / name for hierarchy in hierarchies(root)]
    wait_until(lambda: all(_removed(group) for group in groups), what=f"the end of {name}", seconds=REMOVE_SECONDS)


def _removed(group: Path) -> bool:
    for folder, _, _ in os.walk(group, topdown=False):
        with suppress(OSError):
            Path(folder).rmdir()
    return not group.exists()

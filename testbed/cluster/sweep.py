"""Removing all that a cluster has made in the system.

The same sweep ends every cluster: after its programs were stopped in order, and when its owner is found dead.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from typing import TYPE_CHECKING

from testbed.cluster import cgroups
from testbed.cluster.namespaces import KUBELET_DIRECTORY
from testbed.cluster.network import remove_link
from testbed.cluster.processes import kill, processes_of, wait_until
from testbed.cluster.state import ClusterRecord

if TYPE_CHECKING:
    from pathlib import Path

    from testbed.cluster.progress import Progress

KILL_SECONDS = 20.0


def sweep(record: ClusterRecord) -> None:
    """Kill what is left of a cluster, undo what it made, and delete its directory.

    Raises:
        NotReadyError: something can't be killed.
        CommandError: something of a real node can't be undone.
    """
    wait_until(lambda: _killed(record.directory), what="the end of killed programs", seconds=KILL_SECONDS)
    if record.node is not None:
        remove_link(record.node.link)
        cgroups.remove(record.node.cgroup)
        # Ours only if it is empty.
        with suppress(OSError):
            KUBELET_DIRECTORY.rmdir()
    if record.directory.exists():
        shutil.rmtree(record.directory)


def _killed(directory: Path) -> bool:
    left = processes_of(directory)
    kill(left)
    return not left


def sweep_dead(clusters: Path, *, progress: Progress) -> None:
    """Sweep every cluster whose owner is dead. The caller holds the lock under which clusters register."""
    directories = sorted(path for path in clusters.iterdir() if path.is_dir()) if clusters.exists() else []
    for directory in directories:
        record = ClusterRecord.read(directory)
        if record is None:
            # Its owner died before anything was started, or after everything was stopped.
            shutil.rmtree(directory)
        elif not record.owner.alive():
            with progress.step(f"sweep cluster {record.name}, whose owner is dead"):
                sweep(record)

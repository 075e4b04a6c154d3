"""The demo, started as a user of a cluster starts it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from testbed.cluster import ExistingCluster

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "demo" / "eagle3.yaml"


def start_demo(cluster: ExistingCluster, *arguments: str) -> subprocess.Popen[str]:
    """Start the demo of one example in a process of its own; its output comes by a pipe."""
    where = (f"--kubeconfig={cluster.kubeconfig}", f"--address={cluster.host_address}", f"--models={EXAMPLE}")
    # When this process is killed, it ends as at a Ctrl-C.
    tied = ("setpriv", "--pdeathsig=INT", sys.executable)
    return subprocess.Popen(
        [*tied, "-m", "testbed.demo", *where, *arguments],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )

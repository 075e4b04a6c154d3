"""A process of its own that owns a cluster, as a user's terminal does."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def cluster_owner(*options: str) -> Iterator[subprocess.Popen[str]]:
    """Start a cluster as its user would, who reads on when it runs; it ends with the body at the latest."""
    # When this process is killed, it ends as at a Ctrl-C.
    argv = ["setpriv", "--pdeathsig=INT", sys.executable, "-m", "testbed.cluster", "up", *options]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, start_new_session=True) as owner:
        try:
            yield owner
        finally:
            if owner.poll() is None:
                owner.send_signal(signal.SIGINT)

"""Commands of the system that end by themselves."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from testbed.cluster.errors import CommandError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Not on every user's PATH, and home of ip, iptables and runc.
SYSTEM_PATH = "/usr/sbin:/sbin:/usr/bin:/bin"
# What ends after a tenth of a second needs no garbage collection, and would spend a fifth of its time on it.
SHORT_LIVED = {"GOGC": "off", "GOMEMLIMIT": "1GiB"}
"""The environment of Go programs that do one thing and end."""


def search_path() -> str:
    """Return PATH with the system's own folders at its end."""
    return f"{os.environ.get('PATH', '')}:{SYSTEM_PATH}".lstrip(":")


def run(argv: Sequence[str], *, environment: Mapping[str, str] | None = None) -> str:
    """Run a command and return its output.

    Raises:
        CommandError: it could not be started or ended with an error; the message carries its output.
    """
    try:
        finished = subprocess.run(
            list(argv),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PATH": search_path(), **(environment or {})},
        )
    except OSError as error:
        raise CommandError(f"{argv[0]} could not be started: {error}") from error
    if finished.returncode != 0:
        raise CommandError(f"{' '.join(argv)}: {(finished.stderr or finished.stdout).strip()}")
    return finished.stdout

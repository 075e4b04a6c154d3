"""Where the testbed keeps what it builds, and what it runs."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

CACHE_VARIABLE = "SPECDEC_CACHE"


def cache_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the testbed's cache: `$SPECDEC_CACHE`, else `specdec` below the user's cache directory."""
    if chosen := environment.get(CACHE_VARIABLE):
        return Path(chosen).absolute()
    users = environment.get("XDG_CACHE_HOME")
    return (Path(users) if users else Path.home() / ".cache").absolute() / "specdec"


def clusters_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder that holds one folder per running cluster."""
    return cache_directory(environment) / "clusters"


@contextmanager
def exclusive(lock: Path) -> Iterator[None]:
    """Hold a file lock; waits while another process holds it, and is free when its holder dies."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w", encoding="utf-8") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield

"""The one way to get a cluster: `with running_cluster(options, progress=…) as cluster`."""

from __future__ import annotations

import os
import re
import shutil
import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from testbed.cluster.binaries import Builder
from testbed.cluster.cache import cache_directory, clusters_directory, exclusive
from testbed.cluster.control_plane import Users
from testbed.cluster.errors import ClusterNameError, TestbedError
from testbed.cluster.node import NODE_NAME
from testbed.cluster.processes import Programs
from testbed.cluster.requirements import require_node_programs
from testbed.cluster.startup import Startup
from testbed.cluster.state import ClusterRecord, NodeRecord, this_process
from testbed.cluster.sweep import sweep, sweep_dead
from testbed.cluster.tools import CONTROL_PLANE, NODE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from testbed.cluster.cluster import Cluster, ClusterOptions
    from testbed.cluster.progress import Progress
    from testbed.cluster.requirements import NodePrograms

NAME_PATTERN = re.compile(r"[a-z0-9]([a-z0-9-]{0,18}[a-z0-9])?")


@contextmanager
def running_cluster(options: ClusterOptions, *, progress: Progress) -> Iterator[Cluster]:
    """Start a cluster, and stop it when the body ends, however it ends.

    Builds the binaries if they are missing, and first sweeps what clusters of dead owners left.

    Raises:
        BuildError: a binary could not be built.
        ClusterNameError: the name can't be one, or a cluster of this name is running.
        CommandError: the machine refuses something that the real node needs.
        NotReadyError: something did not start in time.
        ProgramError: a program ended while it started.
        RealNodeUnavailableError: a real node is asked for, and this machine can't carry it.
        ToolchainError: binaries must be built, and there is no Go.
    """
    system = require_node_programs(progress) if options.real_node is not None else None
    tools = [*CONTROL_PLANE, *(NODE if options.real_node is not None else ())]
    binaries = Builder(cache=cache_directory(), environment=os.environ, progress=progress).ensure(tools)
    record = _register(options, progress=progress)
    programs = Programs(record.directory)
    startup = Startup(
        options=options, record=record, binaries=binaries, programs=programs, users=Users.new(node=NODE_NAME)
    )
    try:
        yield _start(startup, system=system, progress=progress)
    finally:
        with uninterrupted(), progress.step(f"stop cluster {record.name}"):
            programs.stop()
            with _registry():
                sweep(record)


def clean(*, progress: Progress) -> None:
    """Sweep what clusters of dead owners left.

    Raises:
        NotReadyError: something can't be killed, or stays in use.
    """
    with _registry():
        sweep_dead(clusters_directory(), progress=progress)


def _registry() -> AbstractContextManager[None]:
    return exclusive(clusters_directory() / ".lock")


def _register(options: ClusterOptions, *, progress: Progress) -> ClusterRecord:
    if NAME_PATTERN.fullmatch(options.name) is None:
        raise ClusterNameError(f"cluster name {options.name!r}: use up to 20 lower-case letters, digits and dashes")
    with _registry():
        sweep_dead(clusters_directory(), progress=progress)
        directory = clusters_directory() / options.name
        if ClusterRecord.read(directory) is not None:
            raise ClusterNameError(f"cluster {options.name} is running; stop it or choose another name")
        directory.mkdir(mode=0o700)
        node = NodeRecord.of(directory) if options.real_node is not None else None
        record = ClusterRecord(name=options.name, directory=directory, owner=this_process(), node=node)
        record.write()
    return record


def _start(startup: Startup, *, system: NodePrograms | None, progress: Progress) -> Cluster:
    node, names = startup.options.real_node, startup.record.node
    try:
        with progress.step(f"start cluster {startup.record.name}"):
            if node is None or names is None or system is None:
                return startup.without_node()
            return startup.with_node(node, names=names, system=system, lock=_registry())
    except TestbedError:
        progress.say(f"the logs of the failed start are kept in {_keep_logs(startup.record.directory)}")
        raise


def _keep_logs(directory: Path) -> Path:
    kept = cache_directory() / "failed-start"
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(directory / "logs", kept, dirs_exist_ok=True)
    return kept


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let no second Ctrl-C cut a clean-up short; every step of it has a deadline."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)

"""One real cluster, hub and operator under all end-to-end tests; the models of all modules come up side by side."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from testbed.cluster import TerminalProgress
from testbed.cluster.binaries import Builder
from testbed.cluster.cache import cache_directory
from testbed.cluster.processes import processes_of
from testbed.cluster.requirements import require_node_programs
from testbed.cluster.tools import CONTROL_PLANE, NODE
from testbed.runtime.build import build_image
from testbed.session import running_session
from tests.e2e.casting import CASTS, GPUS
from tests.e2e.place import Place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from testbed.cluster import Progress
    from testbed.session import Session

NEED_A_NODE = frozenset({"place", "users_cluster"})


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build what the session needs before the first test's timeout runs."""
    needed = any(NEED_A_NODE.intersection(getattr(item, "fixturenames", ())) for item in session.items)
    if not needed or os.geteuid() != 0 or session.config.option.collectonly:
        return
    progress = TerminalProgress(sys.stderr)
    require_node_programs(progress)
    Builder(cache=cache_directory(), environment=os.environ, progress=progress).ensure([*CONTROL_PLANE, *NODE])
    build_image(cache=cache_directory(), progress=progress.say)


@pytest.fixture(scope="session")
def progress() -> Iterator[Progress]:
    # pytest captures file descriptor 2 while tests and fixtures run; its duplicate speaks to the terminal.
    with os.fdopen(os.dup(sys.__stderr__.fileno() if sys.__stderr__ else 2), "w") as stream:
        yield TerminalProgress(stream)


@pytest.fixture(scope="session")
def session(progress: Progress) -> Iterator[Session]:
    with running_session(progress=progress, gpus=GPUS) as running:
        yield running
    assert not processes_of(running.cluster.directory), "a process of the session is left"
    assert not running.cluster.directory.exists(), "the cluster's folder is left"


@pytest.fixture(scope="session")
def places(session: Session, request: pytest.FixtureRequest) -> dict[str, Place]:
    """A namespace for each test module that was chosen, with its models applied: they all come up side by side."""
    chosen = {
        item.module.__name__.rpartition(".")[2] for item in request.session.items if isinstance(item, pytest.Function)
    }
    made = {}
    for module, cast in CASTS.items():
        if module in chosen:
            made[module] = Place(session, cast.namespace)
            cast.enter(made[module])
    return made


@pytest.fixture
def place(places: dict[str, Place], request: pytest.FixtureRequest) -> Place:
    """The module's own namespace, its models applied."""
    return places[request.module.__name__.rpartition(".")[2]]

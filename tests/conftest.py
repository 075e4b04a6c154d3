"""Settings of all tests, and how two workers share them.

Most of the time the tests with a cluster wait, so `make test` runs two workers side by side, each with a lane of its
own: one has the control plane that the operators under test share, the other the real node. All other tests come
last, a module at a time: they fill what is left of either's time.
"""

from __future__ import annotations

import gc
import os
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING

import hypothesis
import pytest
from xdist.scheduler import LoadScopeScheduling

from testbed.cluster import ClusterOptions, RealNode, TerminalProgress, running_cluster
from testbed.cluster.lifecycle import clean
from testbed.event_loop import PatientLoop

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from xdist.remote import Producer

    from testbed.cluster import Cluster, Progress

LANES: Mapping[str, Sequence[str]] = {
    "control plane": (
        # Takes the CRDs away, and gives them back.
        "integration/test_operator_before_crds.py",
        "integration/",
        # Judges what all operators of the lane asked for.
        "integration/test_operator_rights.py",
    ),
    "real node": (
        # Starts the session's cluster and applies models, which come up during the next ones.
        "e2e/test_refusals.py",
        "integration/test_demo.py",
        # These two use the spare node; the second needs all its GPUs, and ends it.
        "e2e/test_users_cluster.py",
        "integration/test_testbed_real_node.py",
        "e2e/",
        # Ends with a look at servers that have been idle for a while.
        "e2e/test_serving.py",
        # Ends with an operator that is no Helm release.
        "e2e/test_installation.py",
    ),
}
"""The beginnings of the paths of each lane's tests, in their order; the longest that fits counts."""
LANE_END = pytest.StashKey[ExitStack]()
ORDER = [(lane, start) for lane, starts in LANES.items() for start in starts]


def pytest_configure(config: pytest.Config) -> None:
    """Properties are not timed: how long an example takes says more of the machine than of the code."""
    config.stash[LANE_END] = ExitStack()
    hypothesis.settings.register_profile("untimed", deadline=None)
    hypothesis.settings.load_profile("untimed")


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Have every test's loop wait for the connections that it closed."""
    return {"patient": PatientLoop}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the tests of each lane in their order, one lane after the other; workers begin with them, one process ends.

    Whoever runs all tests alone sees first what takes seconds.
    """
    items.sort(key=lambda item: _place(item.nodeid)[1])
    if is_worker(config):
        items.sort(key=lambda item: _place(item.nodeid)[0] == "")


def pytest_collection_finish() -> None:
    """Keep all that collecting made out of later garbage collections: it lives to the end, and is most of the heap."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """End what its lane's last test was the last to use, before the worker runs tests without a cluster."""
    if nextitem is None or _place(nextitem.nodeid)[0] != _place(item.nodeid)[0]:
        item.config.stash[LANE_END].close()


class LaneScheduling(LoadScopeScheduling):  # type: ignore[misc] # xdist has no types
    """Gives each lane to one worker as a whole, then the other modules to whoever has time.

    Modules, not tests: their fixtures are made once, and what the scheduler does at each test's end grows with the
    number of what it has given out.
    """

    def _split_scope(self, nodeid: str) -> str:
        return _place(nodeid)[0] or nodeid.partition("::")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LaneScheduling:
    """Have workers take lanes in the order of their tests: by itself the scheduler begins with the largest module."""
    config.option.loadscopereorder = False
    return LaneScheduling(config, log)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Sweep what workers left that were stopped while they cleaned up, as at a Ctrl-C."""
    if not is_worker(config) and config.getoption("numprocesses", default=None):
        clean(progress=TerminalProgress(sys.stderr))


@pytest.fixture(scope="session")
def progress() -> Iterator[Progress]:
    # A duplicate, which lives as long as the fixtures. pytest captures what goes there, and shows it with a failure.
    with os.fdopen(os.dup(sys.__stderr__.fileno() if sys.__stderr__ else 2), "w") as stream:
        yield TerminalProgress(stream)


@pytest.fixture(scope="session")
def lane_end(pytestconfig: pytest.Config) -> Iterator[ExitStack]:
    """Where a fixture of the session registers what ends with the lane: an idle cluster costs the other lane time."""
    with pytestconfig.stash[LANE_END] as stack:
        yield stack


@pytest.fixture(scope="session")
def spare_node_end() -> Iterator[ExitStack]:
    """What the last module that uses the spare node closes."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture(scope="session")
def spare_node(spare_node_end: ExitStack, progress: Progress) -> Cluster:
    """A cluster with a real node, and nothing of ours in it."""
    options = ClusterOptions(kwok_nodes=None, real_node=RealNode())
    return spare_node_end.enter_context(running_cluster(options, progress=progress))


def is_worker(config: pytest.Config) -> bool:
    """Whether this process is one of several that run tests."""
    return hasattr(config, "workerinput")


def _place(nodeid: str) -> tuple[str, int]:
    """Return a test's lane, "" for none, and its position among all that have one, -1 for none."""
    path = nodeid.partition("::")[0].removeprefix("tests/")
    fitting = [(len(start), position) for position, (_lane, start) in enumerate(ORDER) if path.startswith(start)]
    if not fitting:
        return "", -1
    position = max(fitting)[1]
    return ORDER[position][0], position

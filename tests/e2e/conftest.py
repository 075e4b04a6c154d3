"""One real cluster, hub and operator under all end-to-end tests; the models of several modules come up side by side."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from typing import TYPE_CHECKING

import pytest

from testbed.cluster import ExistingCluster, TerminalProgress
from testbed.cluster.binaries import Builder
from testbed.cluster.cache import cache_directory
from testbed.cluster.existing import find_kubectl
from testbed.cluster.processes import processes_of
from testbed.cluster.requirements import require_node_programs
from testbed.cluster.tools import CONTROL_PLANE, HELM, NODE
from testbed.operator.image import build_operator_image
from testbed.runtime.build import build_image
from testbed.runtime.simulator.release import IMAGE_REFERENCE, VLLM_IMAGE_REFERENCE
from testbed.session import running_session
from tests.e2e.casting import CASTS, GPUS
from tests.e2e.place import Place
from tests.e2e.simulator_root import MODELS, SimulatorRoot
from tests.e2e.users_demo import start_demo

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from types import ModuleType

    from testbed.cluster import Cluster, Progress
    from testbed.session import Session

NEED_A_NODE = frozenset({"place", "users_cluster"})
USERS_CLUSTER = "test_users_cluster"
"""The module whose demo comes up beside the models."""
AHEAD = 5
"""How many modules' models come up while one is tested."""


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build what the session needs before the first test's timeout runs."""
    needed = any(NEED_A_NODE.intersection(getattr(item, "fixturenames", ())) for item in session.items)
    if not needed or os.geteuid() != 0 or session.config.option.collectonly:
        return
    progress = TerminalProgress(sys.stderr)
    require_node_programs(progress)
    Builder(cache=cache_directory(), environment=os.environ, progress=progress).ensure([*CONTROL_PLANE, *NODE, *HELM])
    build_image(cache=cache_directory(), progress=progress.say)
    build_operator_image(cache=cache_directory(), progress=progress.say)


@contextlib.contextmanager
def _session(progress: Progress) -> Iterator[Session]:
    with running_session(progress=progress, gpus=GPUS) as running:
        yield running
    assert not processes_of(running.cluster.directory), "a process of the session is left"
    assert not running.cluster.directory.exists(), "the cluster's folder is left"


@pytest.fixture(scope="session")
def session(lane_end: contextlib.ExitStack, progress: Progress) -> Session:
    return lane_end.enter_context(_session(progress))


@pytest.fixture(scope="session")
def users_cluster(spare_node: Cluster, progress: Progress, tmp_path_factory: pytest.TempPathFactory) -> ExistingCluster:
    """A cluster that was there before, and stays."""
    assert spare_node.node
    for build in (build_image, build_operator_image):
        spare_node.node.import_image(build(cache=cache_directory(), progress=progress.say).archive)
    folder = tmp_path_factory.mktemp("users-cluster")
    return ExistingCluster(spare_node.kubeconfig, spare_node.host_address, folder, find_kubectl(progress))


@pytest.fixture(scope="session")
def users_demo(users_cluster: ExistingCluster) -> Iterator[subprocess.Popen[str]]:
    """A demo on it, which stays until it is told to end."""
    with start_demo(users_cluster, "--keep") as process:
        yield process
        if process.poll() is None:
            process.send_signal(signal.SIGINT)


@pytest.fixture(scope="session")
def tensorrt_llm_root(tmp_path_factory: pytest.TempPathFactory) -> SimulatorRoot:
    """The image with TensorRT-LLM; each module keeps to model repositories of its own in it."""
    return SimulatorRoot(
        tmp_path_factory.mktemp("tensorrt-llm"), cache=cache_directory(), models=MODELS, reference=IMAGE_REFERENCE
    )


@pytest.fixture(scope="session")
def vllm_root(tmp_path_factory: pytest.TempPathFactory) -> SimulatorRoot:
    """The image with vLLM, in the same way."""
    return SimulatorRoot(
        tmp_path_factory.mktemp("vllm"), cache=cache_directory(), models=MODELS, reference=VLLM_IMAGE_REFERENCE
    )


class Places:
    """A namespace for each test module that was chosen, entered some modules before its turn.

    So models come up while the tests before theirs run, and not all at once: two cores carry so many and no more.
    """

    def __init__(self, session: Session, request: pytest.FixtureRequest) -> None:
        chosen = dict.fromkeys(
            _module_name(item.module) for item in request.session.items if isinstance(item, pytest.Function)
        )
        self._session = session
        self._order = [module for module in chosen if module in CASTS or module == USERS_CLUSTER]
        self._request = request
        self._entered: dict[str, Place] = {}

    def __getitem__(self, module: str) -> Place:
        """Enter a module, and those that come soon after it."""
        position = self._order.index(module)
        for name in self._order[: position + 1 + AHEAD]:
            self._enter(name)
        return self._entered[module]

    def _enter(self, module: str) -> None:
        if module == USERS_CLUSTER:
            self._request.getfixturevalue("users_demo")
        elif module not in self._entered:
            self._entered[module] = Place(self._session, CASTS[module].namespace)
            CASTS[module].enter(self._entered[module])


@pytest.fixture(scope="session")
def places(session: Session, request: pytest.FixtureRequest) -> Places:
    return Places(session, request)


@pytest.fixture(scope="module")
def entered(places: Places, request: pytest.FixtureRequest) -> Iterator[Place]:
    """The module's own namespace; at its end its models go, and make room for those after them."""
    place = places[_module_name(request.module)]
    yield place
    place.kubectl("delete", "speculativemodels", "--all", "--wait=false")


@pytest.fixture
def place(entered: Place) -> Place:
    """The module's own namespace, its models applied."""
    return entered


def _module_name(module: ModuleType) -> str:
    return module.__name__.rpartition(".")[2]

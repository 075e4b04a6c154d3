from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from testbed.cluster import ClusterOptions, SilentProgress, running_cluster
from testbed.cluster.cache import clusters_directory
from testbed.cluster.processes import processes_of
from tests.integration.cluster_owner import cluster_owner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from testbed.cluster import Cluster

pytestmark = pytest.mark.controlplane

DOOMED = clusters_directory() / f"doomed-{os.getpid()}"
"""The folder of the clusters whose owners are told to end."""
GPU_POD = {
    "containers": [{"name": "server", "image": "example/server", "resources": {"limits": {"nvidia.com/gpu": 4}}}],
    "nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
}


def deployment(name: str, *, replicas: int = 1, annotations: dict[str, str] | None = None) -> str:
    return json.dumps(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {"app": name}},
                "template": {
                    "metadata": {"labels": {"app": name}, "annotations": annotations or {}},
                    "spec": GPU_POD,
                },
            },
        }
    )


def job(name: str, *, annotations: dict[str, str] | None = None) -> str:
    return json.dumps(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name},
            "spec": {
                "backoffLimit": 0,
                "template": {
                    "metadata": {"annotations": annotations or {}},
                    "spec": {
                        "restartPolicy": "Never",
                        "initContainers": [{"name": "first", "image": "example/first"}],
                        "containers": [{"name": "build", "image": "example/build"}],
                    },
                },
            },
        }
    )


def pods(cluster: Cluster, selector: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = json.loads(cluster.kubectl("get", "pods", "--selector", selector, "--output=json"))[
        "items"
    ]
    return items


def eventually(condition: Callable[[], bool], *, seconds: float = 20.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def started_owner() -> AbstractContextManager[subprocess.Popen[str]]:
    return cluster_owner(f"--name={DOOMED.name}", "--kwok-nodes=0")


def wait_until_it_runs(owner: subprocess.Popen[str]) -> None:
    assert owner.stdout is not None
    assert any("KUBECONFIG" in line for line in owner.stdout)


def kill_owner(owner: subprocess.Popen[str]) -> None:
    os.killpg(owner.pid, signal.SIGKILL)
    owner.wait(10)
    assert processes_of(DOOMED)


@pytest.fixture(scope="module")
def cluster_end() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@dataclass(frozen=True)
class NextStart:
    """The module's own cluster, started after the owner of another was killed.

    Attributes:
        cluster: it runs.
        swept: whether nothing was left of the other.
    """

    cluster: Cluster
    swept: bool


@pytest.fixture(scope="module")
def next_start(cluster_end: ExitStack) -> NextStart:
    with started_owner() as owner:
        wait_until_it_runs(owner)
        kill_owner(owner)
    cluster = cluster_end.enter_context(running_cluster(ClusterOptions(), progress=SilentProgress()))
    return NextStart(cluster, swept=not processes_of(DOOMED) and not DOOMED.exists())


@pytest.fixture(scope="module")
def cluster(next_start: NextStart) -> Cluster:
    """A cluster of two nodes, with nobody else's pods."""
    return next_start.cluster


def test_what_a_killed_owner_left_is_swept_by_the_next_start(next_start: NextStart) -> None:
    assert next_start.swept


def test_the_api_server_tells_the_version_it_was_built_from(cluster: Cluster) -> None:
    assert cluster.client.get("/version")["gitVersion"] == "v1.36.3"


def test_kwok_nodes_offer_their_gpus_and_their_product(cluster: Cluster) -> None:
    node = cluster.client.get("/api/v1/nodes/gpu-node-1")
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "8"
    assert node["metadata"]["labels"]["nvidia.com/gpu.product"] == "NVIDIA-H100-80GB-HBM3"


def test_a_deployment_that_asks_for_gpus_becomes_available(cluster: Cluster) -> None:
    cluster.kubectl("apply", "--server-side", "--filename=-", stdin=deployment("serving", replicas=4))
    try:
        cluster.kubectl("wait", "deployment/serving", "--for=condition=Available", "--timeout=30s")
        placed = [pod["spec"]["nodeName"] for pod in pods(cluster, "app=serving")]
        assert sorted(placed) == ["gpu-node-0", "gpu-node-0", "gpu-node-1", "gpu-node-1"]
    finally:
        cluster.kubectl("delete", "deployment/serving")


def test_a_pod_beyond_the_declared_gpus_stays_unscheduled(cluster: Cluster) -> None:
    cluster.kubectl("apply", "--server-side", "--filename=-", stdin=deployment("greedy", replicas=5))
    try:
        assert eventually(lambda: len(pods(cluster, "app=greedy")) == 5)
        cluster.kubectl("wait", "deployment/greedy", "--for=jsonpath={.status.readyReplicas}=4")
        assert sum("nodeName" not in pod["spec"] for pod in pods(cluster, "app=greedy")) == 1
    finally:
        cluster.kubectl("delete", "deployment/greedy")


def test_a_pod_that_is_never_ready_runs_until_the_annotation_goes(cluster: Cluster) -> None:
    never_ready = {"specdec-testbed/never-ready": "true"}
    cluster.kubectl("apply", "--server-side", "--filename=-", stdin=deployment("slow", annotations=never_ready))
    try:
        cluster.kubectl("wait", "pods", "--selector=app=slow", "--for=jsonpath={.status.phase}=Running")
        time.sleep(1)
        assert pods(cluster, "app=slow")[0]["status"]["containerStatuses"][0]["ready"] is False
        cluster.kubectl("annotate", "pods", "--selector=app=slow", "specdec-testbed/never-ready-")
        cluster.kubectl("wait", "deployment/slow", "--for=condition=Available", "--timeout=30s")
    finally:
        cluster.kubectl("delete", "deployment/slow")


def test_a_jobs_pod_ends_with_the_annotated_termination_message(cluster: Cluster) -> None:
    message = '{"layers": 16, "note": "quotes \\" and\\nlines"}'
    cluster.kubectl("apply", "--server-side", "--filename=-", stdin=job("inspect"))
    try:
        selector = "job-name=inspect"
        cluster.kubectl("wait", "pods", f"--selector={selector}", "--for=jsonpath={.status.phase}=Running")
        cluster.kubectl("annotate", "pods", f"--selector={selector}", f"specdec-testbed/termination-message={message}")
        cluster.kubectl("wait", "job/inspect", "--for=condition=Complete", "--timeout=30s")
        (status,) = pods(cluster, selector)[0]["status"]["containerStatuses"]
        assert status["state"]["terminated"]["message"] == message
    finally:
        cluster.kubectl("delete", "job/inspect")


def test_a_jobs_pod_fails_with_the_annotated_exit_code(cluster: Cluster) -> None:
    annotations = {"specdec-testbed/exit-code": "13"}
    cluster.kubectl("apply", "--server-side", "--filename=-", stdin=job("failing", annotations=annotations))
    try:
        cluster.kubectl("wait", "job/failing", "--for=condition=Failed", "--timeout=30s")
        (status,) = pods(cluster, "job-name=failing")[0]["status"]["containerStatuses"]
        assert status["state"]["terminated"]["exitCode"] == 13
    finally:
        cluster.kubectl("delete", "job/failing")


def test_a_service_accounts_kubeconfig_acts_as_that_account(cluster: Cluster) -> None:
    kubeconfig = cluster.kubeconfig_for_service_account(namespace="default", name="default")
    answer = cluster.kubectl("auth", "whoami", f"--kubeconfig={kubeconfig}", "--output=json")
    user = json.loads(answer)["status"]["userInfo"]["username"]
    assert user == "system:serviceaccount:default:default"


def test_any_users_kubeconfig_has_that_users_rights_only(cluster: Cluster) -> None:
    kubeconfig = cluster.kubeconfig_as(user="jane", groups=["developers"])
    answer = cluster.kubectl("auth", "can-i", "--list", f"--kubeconfig={kubeconfig}")
    assert "*.*" not in answer


@dataclass(frozen=True)
class Ended:
    """A cluster that has ended.

    Attributes:
        directory: its folder.
        nodes: its nodes' names.
        processes: how many it had.
        neighbour_answered: whether another cluster answered while it ran.
    """

    directory: Path
    nodes: list[str]
    processes: int
    neighbour_answered: bool


@pytest.fixture(scope="module")
def ended(cluster: Cluster, cluster_end: ExitStack, operator_cluster: Cluster) -> Ended:
    """The module's own cluster, whose body raised."""
    names = [node["metadata"]["name"] for node in cluster.client.get("/api/v1/nodes")["items"]]
    seen = Ended(cluster.directory, names, len(processes_of(cluster.directory)), operator_cluster.client.ready())
    with suppress(ZeroDivisionError), cluster_end:
        1 / 0  # noqa: B018 - the body's error is the point
    return seen


def test_two_clusters_run_side_by_side(ended: Ended) -> None:
    assert ended.nodes == ["gpu-node-0", "gpu-node-1"]
    assert ended.neighbour_answered


def test_a_cluster_stops_when_its_body_raises(ended: Ended) -> None:
    assert ended.processes == 5
    assert processes_of(ended.directory) == ()


def test_a_stopped_cluster_leaves_no_process_and_no_file(ended: Ended) -> None:
    assert processes_of(ended.directory) == ()
    assert not ended.directory.exists()


def test_ctrl_c_stops_the_cluster_that_up_has_started() -> None:
    with started_owner() as owner:
        wait_until_it_runs(owner)
        assert processes_of(DOOMED)
        owner.send_signal(signal.SIGINT)
        assert owner.wait(30) == 130
    assert processes_of(DOOMED) == ()
    assert not DOOMED.exists()


def test_sigterm_stops_what_up_has_started() -> None:
    with started_owner() as owner:
        assert eventually(lambda: bool(processes_of(DOOMED)))
        owner.send_signal(signal.SIGTERM)
        owner.wait(30)
    assert processes_of(DOOMED) == ()
    assert not DOOMED.exists()


def test_what_a_killed_owner_left_is_swept_by_clean() -> None:
    with started_owner() as owner:
        assert eventually(lambda: bool(processes_of(DOOMED)))
        kill_owner(owner)
    subprocess.run([sys.executable, "-m", "testbed.cluster", "clean"], check=True, capture_output=True)
    assert processes_of(DOOMED) == ()
    assert not DOOMED.exists()


def test_clean_leaves_a_cluster_whose_owner_lives(operator_cluster: Cluster) -> None:
    subprocess.run([sys.executable, "-m", "testbed.cluster", "clean"], check=True, capture_output=True)
    assert operator_cluster.client.ready()

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from testbed.cluster.cache import clusters_directory
from testbed.cluster.images import BUSYBOX_IMAGE
from testbed.cluster.processes import processes_of
from testbed.cluster.state import NodeRecord
from tests.integration.cluster_owner import cluster_owner

if TYPE_CHECKING:
    from collections.abc import Iterator

    from testbed.cluster import Cluster

pytestmark = [
    pytest.mark.realnode,
    pytest.mark.timeout(240),
    pytest.mark.skipif(os.geteuid() != 0, reason="a real node needs root"),
]

SERVER = "id > /store/id; grep Seccomp: /proc/self/status > /store/seccomp; cd /store; exec httpd -f -p 8000"
MANIFESTS = [
    {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "store"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    },
    {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
                    "securityContext": {
                        "runAsNonRoot": True,
                        "runAsUser": 1000,
                        "fsGroup": 2000,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "containers": [
                        {
                            "name": "web",
                            "image": BUSYBOX_IMAGE,
                            "command": ["sh", "-c", SERVER],
                            "resources": {"limits": {"nvidia.com/gpu": 5, "memory": "64Mi"}},
                            "securityContext": {
                                "allowPrivilegeEscalation": False,
                                "capabilities": {"drop": ["ALL"]},
                            },
                            "readinessProbe": {"httpGet": {"path": "/id", "port": 8000}, "periodSeconds": 1},
                            "volumeMounts": [{"name": "store", "mountPath": "/store"}],
                        }
                    ],
                    "volumes": [{"name": "store", "persistentVolumeClaim": {"claimName": "store"}}],
                },
            },
        },
    },
    {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8000}]},
    },
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "client"},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "client", "image": BUSYBOX_IMAGE, "imagePullPolicy": "Never"}],
        },
    },
]


@pytest.fixture(scope="module")
def node_cluster(spare_node: Cluster, spare_node_end: contextlib.ExitStack) -> Iterator[Cluster]:
    for manifest in MANIFESTS:
        spare_node.kubectl("apply", "--server-side", "--filename=-", stdin=json.dumps(manifest))
    spare_node.kubectl("wait", "deployment/web", "--for=condition=Available", "--timeout=60s")
    spare_node.kubectl("wait", "pod/client", "--for=condition=Ready", "--timeout=60s")
    yield spare_node
    spare_node_end.close()


def fetch(url: str) -> str:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=5) as response:
        content: bytes = response.read()
    return content.decode()


def in_client(cluster: Cluster, *argv: str) -> str:
    # kube-proxy learns of a ready pod within a second or two; until then a connection is refused.
    fetch_again = 'for _ in 1 2 3 4 5 6 7 8 9 10; do "$@" && exit; sleep 1; done; exit 1'
    return cluster.kubectl("exec", "client", "--", "sh", "-c", fetch_again, "sh", *argv)


def test_a_pod_runs_as_the_user_and_group_that_it_asks_for(node_cluster: Cluster) -> None:
    answer = node_cluster.kubectl("exec", "deployment/web", "--", "cat", "/store/id")
    assert answer.strip() == "uid=1000 gid=0 groups=0,2000"


def test_a_pod_runs_under_the_runtimes_seccomp_profile(node_cluster: Cluster) -> None:
    answer = node_cluster.kubectl("exec", "deployment/web", "--", "cat", "/store/seccomp")
    assert answer.split() == ["Seccomp:", "2"]


def test_the_scheduler_counts_the_declared_gpus(node_cluster: Cluster) -> None:
    description = node_cluster.kubectl("describe", "node", "testbed-node")
    (line,) = [line for line in description.splitlines() if line.split()[:1] == ["nvidia.com/gpu"]]
    assert line.split()[1:] == ["5", "5"]


def test_a_service_answers_another_pod_by_its_dns_name(node_cluster: Cluster) -> None:
    answer = in_client(node_cluster, "wget", "-qO-", "http://web.default.svc.cluster.local/id")
    assert "uid=1000" in answer


def test_a_service_answers_a_pod_of_its_own(node_cluster: Cluster) -> None:
    answer = node_cluster.kubectl("exec", "deployment/web", "--", "wget", "-qO-", "http://web/id")
    assert "uid=1000" in answer


def test_a_service_answers_the_host_at_its_cluster_ip(node_cluster: Cluster) -> None:
    service = node_cluster.client.get("/api/v1/namespaces/default/services/web")
    assert "uid=1000" in fetch(f"http://{service['spec']['clusterIP']}/id")


def test_a_cluster_ip_that_nobody_serves_is_refused_at_once(node_cluster: Cluster) -> None:
    unused = f"{node_cluster.host_address.rsplit('.', 2)[0]}.127.254"
    command = f"nc -w 20 {unused} 80 2>&1 </dev/null || true"
    answer = node_cluster.kubectl("exec", "client", "--", "sh", "-c", command)
    assert "Connection refused" in answer


def test_a_pod_reaches_the_api_server_by_its_service(node_cluster: Cluster) -> None:
    command = "nc -w 5 kubernetes.default 443 </dev/null"
    node_cluster.kubectl("exec", "client", "--", "sh", "-c", command)


def test_a_pod_reaches_a_server_at_the_hosts_address(node_cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "greeting").write_text("hello")
    argv = [sys.executable, "-m", "http.server", "0", "--bind", node_cluster.host_address]
    with subprocess.Popen(
        [sys.executable, "-u", *argv[1:]], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        assert server.stdout is not None
        port = server.stdout.readline().split("port ")[1].split()[0]
        url = f"http://{node_cluster.host_address}:{port}/greeting"
        try:
            assert in_client(node_cluster, "wget", "-qO-", url) == "hello"
        finally:
            server.kill()


def test_a_claim_is_bound_and_what_a_pod_wrote_stays(node_cluster: Cluster) -> None:
    node_cluster.kubectl("delete", "pods", "--selector=app=web", "--grace-period=1")
    node_cluster.kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    claim = node_cluster.client.get("/api/v1/namespaces/default/persistentvolumeclaims/store")
    volume = claim["spec"]["volumeName"]
    assert "uid=1000" in (node_cluster.directory / "volumes" / volume / "id").read_text()


def test_logs_of_a_pod_can_be_read(node_cluster: Cluster) -> None:
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "speaker"},
        "spec": {
            "template": {
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [{"name": "speaker", "image": BUSYBOX_IMAGE, "command": ["echo", "spoken"]}],
                }
            }
        },
    }
    node_cluster.kubectl("apply", "--server-side", "--filename=-", stdin=json.dumps(job))
    node_cluster.kubectl("wait", "job/speaker", "--for=condition=Complete", "--timeout=30s")
    assert node_cluster.kubectl("logs", "job/speaker") == "spoken\n"


def traces(directory: Path) -> set[str]:
    """Mounts, interfaces, routes, packet filter rules and control groups of this machine, but other clusters' own."""
    own = NodeRecord.of(directory)
    commands = (
        ("ip", "-oneline", "link"),
        ("ip", "route", "show", "table", "all"),
        ("iptables-save",),
        ("sysctl", "vm.overcommit_memory", "vm.panic_on_oom", "kernel.panic", "kernel.panic_on_oops"),
    )
    found = set(Path("/proc/mounts").read_text().splitlines())
    for argv in commands:
        output = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
        # Packets are counted behind a chain's policy; other clusters' pods send some all the time.
        found |= {re.sub(r" \[\d+:\d+\]$", "", line) for line in output.splitlines() if not line.startswith("#")}
    # Other clusters' groups come and go while this looks, which walk bears.
    for parent, groups, _files in os.walk("/sys/fs/cgroup"):
        found |= {f"{parent}/{group}" for group in groups if group.startswith("specdec-")}
    return {line for line in found if "specdec" not in line or own.link in line or own.cgroup in line}


STOPPED, KILLED = "stopped", "killed and swept"
ENDS = {STOPPED: "stopped-node", KILLED: "killed-node"}


@dataclass(frozen=True)
class Ended:
    """What was seen of a node that ran beside others.

    Attributes:
        address: where its pods reached this machine.
        made: what it had made in the system.
        left: what is left of that.
    """

    address: str
    made: set[str]
    left: set[str]


@pytest.fixture(scope="module")
def ended_nodes(node_cluster: Cluster) -> dict[str, Ended]:
    """Two nodes of other processes, started at once beside the module's own: one is stopped, one killed and swept."""
    assert node_cluster.node
    before = {end: traces(clusters_directory() / name) for end, name in ENDS.items()}
    options = ("--real-node", "--gpus=1", f"--image={node_cluster.directory / 'busybox.tar'}")
    with contextlib.ExitStack() as stack:
        owners = {end: stack.enter_context(cluster_owner(f"--name={name}", *options)) for end, name in ENDS.items()}
        addresses = {end: _address_once_a_pod_runs(owner, node_cluster) for end, owner in owners.items()}
        made = {end: _traces_since(before, end) for end in ENDS}
        os.killpg(owners[KILLED].pid, signal.SIGKILL)
    # The other one was stopped as the block was left; what it left is looked for before anything is swept.
    left = {STOPPED: _traces_since(before, STOPPED)}
    assert processes_of(clusters_directory() / ENDS[KILLED])
    subprocess.run([sys.executable, "-m", "testbed.cluster", "clean"], check=True, capture_output=True)
    left[KILLED] = _traces_since(before, KILLED)
    return {end: Ended(addresses[end], made[end], left[end]) for end in ENDS}


def _traces_since(before: dict[str, set[str]], end: str) -> set[str]:
    return traces(clusters_directory() / ENDS[end]) - before[end]


def _address_once_a_pod_runs(owner: subprocess.Popen[str], other: Cluster) -> str:
    assert owner.stdout is not None
    prefix = "export KUBECONFIG="
    kubeconfig = Path(next(line for line in owner.stdout if line.startswith(prefix)).strip().removeprefix(prefix))
    there = f"--kubeconfig={kubeconfig}"
    other.kubectl(there, "apply", "--server-side", "--filename=-", stdin=json.dumps(MANIFESTS[-1]))
    other.kubectl(there, "wait", "pod/client", "--for=condition=Ready", "--timeout=60s")
    server = json.loads(other.kubectl(there, "config", "view", "--minify", "--output=json"))["clusters"][0]
    return str(urlsplit(server["cluster"]["server"]).hostname)


@pytest.mark.parametrize("end", ENDS)
def test_a_node_leaves_nothing_in_the_system(ended_nodes: dict[str, Ended], end: str) -> None:
    directory = clusters_directory() / ENDS[end]
    assert ended_nodes[end].made
    assert ended_nodes[end].left == set()
    assert processes_of(directory) == ()
    assert not directory.exists()


def test_real_nodes_run_side_by_side(ended_nodes: dict[str, Ended], node_cluster: Cluster) -> None:
    addresses = {node_cluster.host_address, *(node.address for node in ended_nodes.values())}
    assert len(addresses) == 3
    assert "uid=1000" in in_client(node_cluster, "wget", "-qO-", "http://web/id")

"""The demo from its own process, on a cluster that was there before and stays."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from testbed.demo.models import describe, serves
from testbed.demo.port_forward import through_port_forward
from testbed.demo.prompt import ask
from testbed.demo.users_cluster import NAMESPACE
from tests.e2e.users_demo import start_demo

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Sequence

    from testbed.cluster import ExistingCluster

pytestmark = [
    pytest.mark.realnode,
    pytest.mark.timeout(600),
    pytest.mark.skipif(os.geteuid() != 0, reason="real pods need a real node, which needs root"),
]

KEPT_LINE = "It stays until Ctrl-C"
STOP_SECONDS = 120.0


@dataclass(frozen=True)
class Shown:
    """What the demo said, and what was asked of its model meanwhile."""

    code: int
    lines: Sequence[str]
    forwarded: str


@pytest.fixture(scope="module")
def shown(users_cluster: ExistingCluster, users_demo: subprocess.Popen[str]) -> Shown:
    lines: list[str] = []
    try:
        line_with(users_demo, KEPT_LINE, seen=lines)
        forwarded = answer_through_port_forward(users_cluster)
    finally:
        rest = stop(users_demo)
    return Shown(users_demo.returncode, [*lines, *rest], forwarded)


def test_the_demo_serves_on_a_users_cluster(shown: Shown) -> None:
    assert any(line.startswith("    answer:     Speculative decoding") for line in shown.lines), shown.lines


def test_a_service_that_is_out_of_reach_answers_through_a_port_forward(shown: Shown) -> None:
    assert shown.forwarded.startswith("Speculative decoding")


def test_ctrl_c_removes_all_that_the_demo_made(shown: Shown, users_cluster: ExistingCluster) -> None:
    assert shown.code == 130
    assert not made(users_cluster), shown.lines


@dataclass(frozen=True)
class Refusal:
    """What the demo said to a cluster that has an operator, and what it left there."""

    code: int
    output: str
    made: Sequence[str]


@pytest.fixture(scope="module")
def refusal(shown: Shown, users_cluster: ExistingCluster) -> Refusal:
    del shown  # it comes first: it needs a cluster without an operator
    users_cluster.kubectl("create", "namespace", "specdec-system")
    users_cluster.kubectl("create", "deployment", "teams-own", "--image=any", "--replicas=0")
    label = "app.kubernetes.io/name=specdec-operator"
    users_cluster.kubectl("label", "deployment", "teams-own", label)
    process = start_demo(users_cluster)
    output = process.communicate()[0]
    return Refusal(process.returncode, output, made(users_cluster))


def test_the_demo_refuses_a_cluster_that_has_an_operator(refusal: Refusal) -> None:
    assert refusal.code == 1
    assert refusal.made == ["namespace/specdec-system"]


def test_an_operator_is_found_in_its_namespace_and_in_any_other(refusal: Refusal) -> None:
    assert "namespace/specdec-system, deployment.apps/teams-own: there already" in refusal.output


def stop(process: subprocess.Popen[str]) -> Sequence[str]:
    """Stop a process as Ctrl-C does, and return what it still said."""
    process.send_signal(signal.SIGINT)
    return process.communicate(timeout=STOP_SECONDS)[0].splitlines()


def line_with(process: subprocess.Popen[str], start_of_line: str, *, seen: list[str]) -> None:
    """Read its output up to a line; pytest's timeout ends the wait."""
    assert process.stdout is not None
    for line in process.stdout:
        seen.append(line.rstrip("\n"))
        if line.startswith(start_of_line):
            return
    raise AssertionError("\n".join(["it ended:", *seen]))


def answer_through_port_forward(cluster: ExistingCluster) -> str:
    path = f"/apis/specdec.dev/v1alpha1/namespaces/{NAMESPACE}/speculativemodels/eagle3"
    model: dict[str, Any] = cluster.client.get(path)
    assert serves(model), describe(model)
    with through_port_forward(cluster, namespace=NAMESPACE)(model) as (address, port):
        return ask(address, model["status"], "What is speculative decoding?", port=port).text


def made(cluster: ExistingCluster) -> list[str]:
    """Name what the demo makes outside its namespace, and its namespace."""
    kinds = "namespaces,clusterroles,clusterrolebindings,customresourcedefinitions"
    names = cluster.kubectl("get", kinds, "--output=name").split()
    return [name for name in names if "specdec" in name]

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from specdec_operator.api.configuration import OperatorConfiguration
from specdec_operator.packaging.values import ChartValues
from testbed.cluster.errors import CommandError
from testbed.operator.errors import OperatorError
from testbed.operator.release import OperatorRelease, chart_values, chart_version
from testbed.session import configuration, simulator_release

if TYPE_CHECKING:
    from pathlib import Path

Json = dict[str, Any]
IMAGE = "registry:5000/team/operator:1-abc"


def pod(*, container: str = "now", state: Json | None = None) -> Json:
    status = {"containerID": f"containerd://{container}", "state": state or {"running": {}}}
    return {
        "metadata": {"name": "operator-1"},
        "status": {"containerStatuses": [status], "conditions": [{"type": "Ready", "status": "True"}]},
    }


@dataclass
class Client:
    """Answers with one Deployment and its pods."""

    pods: list[Json]
    conditions: list[Json] = field(default_factory=list)

    def get(self, path: str) -> Json:
        if "/pods?" in path:
            return {"items": self.pods}
        return {"spec": {"replicas": 1}, "status": {"conditions": self.conditions}}


@dataclass
class Cluster:
    """A cluster that only answers reads and logs."""

    client: Client
    logs: dict[str, str] = field(default_factory=dict)

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        del stdin
        log = self.logs.get("previous" if "--previous" in arguments else "present")
        if log is None:
            raise CommandError("no log")
        return log


@dataclass
class Helm:
    """Notes what it was asked."""

    asked: list[tuple[str, ...]] = field(default_factory=list)

    def run(self, *arguments: str) -> str:
        self.asked.append(arguments)
        return "done"


def release(folder: Path, *pods: Json, **fields: Any) -> OperatorRelease:
    fields.setdefault("cluster", Cluster(Client(list(pods)), {"present": "", "previous": ""}))
    fields.setdefault("helm", Helm())
    return OperatorRelease(image=IMAGE, configuration=OperatorConfiguration(), directory=folder, **fields)


def test_a_configuration_becomes_values_that_the_chart_takes() -> None:
    wanted = configuration([simulator_release("simulator:1")], endpoint="http://10.0.0.1:8000", namespaces=["demo"])
    values = chart_values(wanted, image=IMAGE)
    read = ChartValues.model_validate(values)
    assert read.namespaces == ["demo"]
    assert OperatorConfiguration.model_validate({**read.config, "namespaces": read.namespaces}) == wanted


def test_an_image_is_taken_apart_at_its_tag() -> None:
    values = chart_values(OperatorConfiguration(), image=IMAGE)
    assert values["image"] == {"repository": "registry:5000/team/operator", "tag": "1-abc", "pullPolicy": "Never"}


def test_what_the_chart_sets_itself_is_left_to_it() -> None:
    wanted = OperatorConfiguration(instance="elsewhere/other", namespaces=["demo"], read_nodes=True)
    assert chart_values(wanted, image=IMAGE)["config"] == {}


def test_an_install_creates_the_namespace_and_hands_helm_the_values(tmp_path: Path) -> None:
    helm = Helm()
    release(tmp_path, helm=helm, values={"replicas": 2}).install()
    (asked,) = helm.asked
    file = next(argument for argument in asked if argument.startswith("--values="))
    assert asked[0] == "install"
    assert {"--create-namespace", "--namespace=specdec-system"} <= set(asked)
    assert yaml.safe_load((tmp_path / file.rpartition("/")[2]).read_text())["replicas"] == 2


def test_an_upgrade_keeps_what_is_not_changed(tmp_path: Path) -> None:
    operator = release(tmp_path, values={"replicas": 2})
    operator.upgrade(configuration=OperatorConfiguration(workers=4))
    values = json.loads(json.dumps(yaml.safe_load((tmp_path / "specdec-operator-values.yaml").read_text())))
    assert (values["replicas"], values["config"]) == (2, {"workers": 4})


def test_a_killed_containers_log_is_kept_with_that_of_the_next(tmp_path: Path) -> None:
    next_one = pod(container="next")
    next_one["status"]["containerStatuses"][0]["lastState"] = {
        "terminated": {"containerID": "containerd://killed", "exitCode": 137}
    }
    cluster = Cluster(Client([next_one]), {"previous": "first life\n", "present": "second life\n"})
    operator = release(tmp_path, cluster=cluster)
    assert operator.log == "first life\nsecond life\n"
    cluster.logs.pop("previous")
    assert operator.log == "first life\nsecond life\n"


async def test_a_missing_image_is_told_at_once(tmp_path: Path) -> None:
    waiting = {"waiting": {"reason": "ErrImageNeverPull", "message": "image is not present"}}
    async with asyncio.timeout(30):
        with pytest.raises(OperatorError, match="ErrImageNeverPull: image is not present"):
            await release(tmp_path, pod(state=waiting)).ready(seconds=3600)


async def test_a_pod_that_does_not_come_up_in_time_is_told_with_where_to_look(tmp_path: Path) -> None:
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}
    with pytest.raises(OperatorError) as refused:
        await release(tmp_path, pod(state=waiting)).ready(seconds=0)
    assert "CrashLoopBackOff: back-off 10s" in str(refused.value)
    assert "kubectl -n specdec-system describe pods" in str(refused.value)


async def test_pods_that_are_refused_are_told_in_the_api_servers_words(tmp_path: Path) -> None:
    refused = {"type": "ReplicaFailure", "message": "violates PodSecurity"}
    cluster = Cluster(Client([], [refused]))
    with pytest.raises(OperatorError, match="0 of 1 pods are there violates PodSecurity"):
        await release(tmp_path, cluster=cluster).ready(seconds=0)


def test_nobody_here_can_kill_an_operator_on_nodes_elsewhere(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="not of this machine"):
        release(tmp_path, pod()).kill()


async def test_a_killed_operator_is_not_ready_before_it_has_started_again(tmp_path: Path) -> None:
    @dataclass
    class Node:
        killed: list[str] = field(default_factory=list)

        def kill_container(self, container: str) -> None:
            self.killed.append(container)

    node = Node()
    operator = release(tmp_path, pod(), node=node)
    operator.kill()
    assert node.killed == ["now"]
    with pytest.raises(OperatorError, match="operator-1 has not started"):
        await operator.ready(seconds=0)


def test_the_chart_is_named_with_its_version() -> None:
    name, version = chart_version().split()
    assert name == "specdec-operator"
    assert version[0].isdigit()

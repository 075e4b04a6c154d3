from __future__ import annotations

from typing import Any

import pytest

from testbed.operator.pod_state import container_ids, is_ready, running_container, trouble

Json = dict[str, Any]


def pod(*, state: Json | None = None, last: Json | None = None, conditions: list[Json] | None = None) -> Json:
    container = {"containerID": "containerd://now", "state": state or {"running": {}}, "lastState": last or {}}
    status = {"containerStatuses": [container], "conditions": conditions or []}
    return {"metadata": {"name": "operator-1"}, "status": status}


ENDED: Json = {"terminated": {"exitCode": 137, "containerID": "containerd://before"}}


def test_a_running_pod_has_no_trouble() -> None:
    assert trouble(pod()) == ""


def test_a_pod_whose_container_is_being_made_has_no_trouble() -> None:
    assert trouble(pod(state={"waiting": {"reason": "ContainerCreating"}})) == ""


def test_a_missing_image_is_told_in_the_kubelets_words() -> None:
    waiting = {"reason": "ErrImageNeverPull", "message": "Container image is not present"}
    assert (
        trouble(pod(state={"waiting": waiting}))
        == "operator-1 waits: ErrImageNeverPull: Container image is not present"
    )


def test_a_crash_loop_is_told_with_the_last_exit_code() -> None:
    said = trouble(pod(state={"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}, last=ENDED))
    assert said.endswith("CrashLoopBackOff: back-off 10s (it ended with code 137)")


def test_an_unschedulable_pod_is_told_with_the_schedulers_reason() -> None:
    condition = {"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available"}
    assert trouble(pod(conditions=[condition])) == "operator-1 is not scheduled: 0/1 nodes are available"


def test_an_ended_container_is_told_with_its_code() -> None:
    assert trouble(pod(state=ENDED)) == "operator-1 ended with code 137"


def test_a_container_that_was_started_again_leaves_the_one_before_known() -> None:
    assert container_ids(pod(last=ENDED)) == ("before", "now")


@pytest.mark.parametrize(("state", "running"), [({"running": {}}, "now"), (ENDED, "")])
def test_only_a_running_container_can_be_killed(state: Json, running: str) -> None:
    assert running_container(pod(state=state)) == running


@pytest.mark.parametrize("status", ["True", "False"])
def test_a_pod_is_ready_when_the_kubelet_says_so(status: str) -> None:
    assert is_ready(pod(conditions=[{"type": "Ready", "status": status}])) == (status == "True")

"""Recorded states of pods and Jobs on their way, and which of them a run acts on."""

from __future__ import annotations

from typing import Any

import pytest

from specdec_operator.reconcile.relevance import is_relevant
from specdec_operator.resources.labels import ARTIFACT, MODEL


def child(status: dict[str, Any] | None = None, *, label: str = MODEL, **metadata: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"metadata": {"name": "c", "labels": {label: "x"}, **metadata}}
    return made if status is None else {**made, "status": status}


def pod(phase: str, *, waiting: str = "", label: str = MODEL, **metadata: Any) -> dict[str, Any]:
    containers = [{"name": "server", "state": {"waiting": {"reason": waiting}}}] if waiting else []
    return child({"phase": phase, "containerStatuses": containers}, label=label, **metadata)


def job(*conditions: tuple[str, str], **metadata: Any) -> dict[str, Any]:
    return child({"conditions": [{"type": kind, "status": status} for kind, status in conditions]}, **metadata)


UNSCHEDULABLE = {
    "phase": "Pending",
    "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}],
}


@pytest.mark.parametrize(
    "on_its_way",
    [child(), child({}), pod("Pending"), pod("Pending", waiting="ContainerCreating")],
    ids=["made", "without a phase", "scheduled", "creating"],
)
def test_a_pod_on_its_way_to_its_node_is_not(on_its_way: dict[str, Any]) -> None:
    assert not is_relevant("pods", on_its_way)


@pytest.mark.parametrize(
    "stuck", [child(UNSCHEDULABLE), pod("Pending", waiting="ImagePullBackOff")], ids=["unschedulable", "no image"]
)
def test_a_pod_that_is_stuck_is(stuck: dict[str, Any]) -> None:
    assert is_relevant("pods", stuck)


@pytest.mark.parametrize("label", [MODEL, ARTIFACT])
def test_a_pod_that_runs_is(label: str) -> None:
    assert is_relevant("pods", pod("Running", label=label))


def test_a_serving_pod_that_failed_is() -> None:
    assert is_relevant("pods", pod("Failed"))


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_jobs_pod_that_ended_is_not_for_its_job_says_so(phase: str) -> None:
    assert not is_relevant("pods", pod(phase, label=ARTIFACT))


@pytest.mark.parametrize("plural", ["pods", "jobs"])
def test_what_is_being_deleted_is(plural: str) -> None:
    assert is_relevant(plural, child(deletionTimestamp="2026-01-01T00:00:00Z"))


@pytest.mark.parametrize("end", ["Complete", "Failed"])
def test_a_job_that_ended_is(end: str) -> None:
    assert is_relevant("jobs", job((end, "True")))


@pytest.mark.parametrize(
    "on_its_way",
    [child(), job(), job(("SuccessCriteriaMet", "True")), job(("Complete", "False"))],
    ids=["made", "active", "about to end", "not complete"],
)
def test_a_job_on_its_way_to_its_end_is_not(on_its_way: dict[str, Any]) -> None:
    assert not is_relevant("jobs", on_its_way)


@pytest.mark.parametrize("plural", ["services", "configmaps", "deployments", "controllerrevisions"])
def test_any_other_child_is(plural: str) -> None:
    assert is_relevant(plural, child())

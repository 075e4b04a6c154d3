"""The serving side as recorded objects show it."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, cast

import pytest

from specdec_operator.api.v1alpha1.speculative_model import parse
from specdec_operator.api.v1alpha1.status import Condition, ProofStatus
from specdec_operator.pod.termination import Failed, encode
from specdec_operator.reconcile.rollout import Rollout

if TYPE_CHECKING:
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModel
    from specdec_operator.reconcile.context import Context

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
DRIVER = Failed("DriverTooOld", "the driver is 535", terminal=True)
FAILING = {"name": "check", "state": {"terminated": {"exitCode": 3, "message": encode(DRIVER)}}}


class Api:
    """Answers with a model's Deployment, Service and pods."""

    def __init__(self, *pods: dict[str, Any], exceeded: bool = False) -> None:
        self.pods = list(pods)
        self.exceeded = exceeded

    async def get(self, resource: Any, **_: Any) -> dict[str, Any]:
        if resource.plural == "services":
            return {"metadata": {"uid": "s"}, "spec": {"clusterIP": "10.0.0.1"}}
        reason = "ProgressDeadlineExceeded" if self.exceeded else "ReplicaSetUpdated"
        owner = {"kind": "SpeculativeModel", "name": "m", "uid": "u", "controller": True}
        return {
            "metadata": {
                "name": "m-serving",
                "namespace": "n",
                "uid": "d",
                "generation": 1,
                "ownerReferences": [owner],
            },
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": {"a": "b"}},
                "template": {"metadata": {"labels": {"specdec.dev/revision": "m-1"}}},
            },
            "status": {"observedGeneration": 1, "conditions": [{"type": "Progressing", "reason": reason}]},
        }

    async def list(self, resource: Any, **_: Any) -> list[dict[str, Any]]:
        return self.pods if resource.plural == "pods" else []


def pod(*, init: Any = None, phase: str = "Pending", conditions: Any = (), **metadata: Any) -> dict[str, Any]:
    labels = {"specdec.dev/revision": "m-1"}
    status = {"phase": phase, "conditions": list(conditions), "initContainerStatuses": [init] if init else []}
    return {"metadata": {"name": "p", "uid": "p", "labels": labels, **metadata}, "status": status}


def model() -> SpeculativeModel:
    source = {"source": {"huggingFace": {"repository": "a/b"}}}
    spec = {"target": source, "speculation": {"method": "None"}}
    return parse({"metadata": {"name": "m", "namespace": "n", "uid": "u"}, "spec": spec})


def rollout(api: Api) -> Rollout:
    return Rollout(cast("Context", SimpleNamespace(api=api, now=lambda: NOW)), model())


async def test_a_pod_that_failed_its_check_is_trouble() -> None:
    serving = await rollout(Api(pod(init=FAILING))).observed()
    assert serving
    assert serving.trouble
    assert serving.trouble.reason == "DriverTooOld"


@pytest.mark.parametrize(
    "leaving",
    [pod(init=FAILING, deletionTimestamp="2026-01-01T00:00:00Z"), pod(init=FAILING, phase="Failed")],
    ids=["deleted", "evicted"],
)
async def test_a_pod_whose_place_another_takes_is_no_trouble(leaving: dict[str, Any]) -> None:
    serving = await rollout(Api(leaving, pod())).observed()
    assert serving
    assert serving.trouble is None


UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no GPU"}


def scheduled(time: str) -> dict[str, str]:
    return {"type": "PodScheduled", "status": "True", "lastTransitionTime": time}


READY = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T01:00:00Z"}


async def failure(*pods: dict[str, Any], can_return: bool) -> str:
    """The reason for which the revision of pods whose deadline is exceeded counts as failed; empty if it does not."""
    made = rollout(Api(*pods, exceeded=True))
    serving = await made.observed()
    assert serving
    found = made.failure(serving, can_return=can_return)
    return found.reason if found else ""


async def test_a_first_revision_waits_for_a_gpu_as_long_as_it_takes() -> None:
    assert await failure(pod(conditions=[UNSCHEDULABLE]), can_return=False) == ""


async def test_a_first_revision_that_may_have_no_pod_waits_too() -> None:
    assert await failure(can_return=False) == ""


async def test_a_pod_that_got_its_gpu_late_has_its_whole_time() -> None:
    assert await failure(pod(conditions=[scheduled("2026-01-01T11:30:00Z")]), can_return=False) == ""


async def test_a_first_revision_that_had_its_time_on_a_node_has_failed() -> None:
    assert await failure(pod(conditions=[scheduled("2026-01-01T10:00:00Z")]), can_return=False) == "StartupTimeout"


async def test_a_pod_that_serves_is_not_stopped_for_another_that_finds_no_node() -> None:
    serving = pod(conditions=[scheduled("2026-01-01T01:00:00Z"), READY])
    assert await failure(serving, pod(conditions=[UNSCHEDULABLE]), can_return=False) == ""


async def test_a_change_that_finds_no_node_in_time_gives_way_to_the_good_revision() -> None:
    assert await failure(pod(conditions=[UNSCHEDULABLE]), can_return=True) == "Unschedulable"


@pytest.mark.parametrize(
    ("status", "wrong_since", "expected"),
    [
        ("False", "2026-01-01T10:00:00Z", "WrongAnswer"),
        ("False", "2026-01-01T11:30:00Z", ""),
        ("False", None, ""),
        ("Unknown", "2026-01-01T10:00:00Z", ""),
    ],
    ids=["for too long", "not for long", "not wrong", "not known just now"],
)
async def test_a_proof_that_stays_wrong_condemns_a_revision(
    status: Literal["False", "Unknown"], wrong_since: str | None, expected: str
) -> None:
    made = rollout(Api(pod()))
    serving = await made.observed()
    assert serving
    long_ago = "2026-01-01T01:00:00Z"
    served = Condition(
        type="Served", status=status, reason="WrongAnswer", message="no text", last_transition_time=long_ago
    )
    found = made.misproven(serving, served, ProofStatus(revision="m-1", pods="p", wrong_since=wrong_since))
    assert (found.reason if found else "") == expected

from __future__ import annotations

from typing import Any

import pytest

from specdec_operator.reconcile.observation import Serving
from specdec_operator.reconcile.proving import pods_key


def pod(uid: str, *, ready: str = "True", revision: str = "m-1", **metadata: Any) -> dict[str, Any]:
    labels = {"specdec.dev/revision": revision}
    conditions = [{"type": "Ready", "status": ready}]
    return {"metadata": {"uid": uid, "labels": labels, **metadata}, "status": {"conditions": conditions}}


def key(*pods: dict[str, Any], service: str = "s") -> str:
    return pods_key(
        Serving(
            revision="m-1",
            wanted=1,
            replicas=1,
            ready=1,
            updated_ready=True,
            pods=pods,
            service={"metadata": {"uid": service}},
            trouble=None,
            deadline_exceeded=False,
        )
    )


def test_another_pod_is_proven_again() -> None:
    assert key(pod("a")) != key(pod("b"))


def test_a_service_made_anew_is_proven_again() -> None:
    assert key(pod("a")) != key(pod("a"), service="t")


@pytest.mark.parametrize(
    "other",
    [pod("b", deletionTimestamp="2026-01-01T00:00:00Z"), pod("b", ready="False"), pod("b", revision="m-0")],
    ids=["leaving", "not ready", "of another revision"],
)
def test_a_pod_that_does_not_answer_changes_nothing(other: dict[str, Any]) -> None:
    assert key(pod("a"), other) == key(pod("a"))

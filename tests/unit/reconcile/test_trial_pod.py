from __future__ import annotations

from typing import Any

import pytest

from specdec_operator.reconcile.trial_pod import fits_then


def template(*, priority: str = "", **resources: str) -> dict[str, Any]:
    asked = {"requests": resources, "limits": resources}
    containers = [{"name": "server", "resources": asked}, {"name": "sidecar", "resources": {"requests": {"cpu": "1"}}}]
    check = [{"name": "check", "resources": {"requests": {"cpu": "8"}}}]
    spec: dict[str, Any] = {"containers": containers, "initContainers": check}
    return {"metadata": {}, "spec": {**spec, "priorityClassName": priority} if priority else spec}


def refusal(requested: str, used: str, limited: str) -> str:
    return f'pods "trial" is forbidden: exceeded quota: q, requested: {requested}, used: {used}, limited: {limited}'


OLD = template(cpu="4", memory="16Gi")


@pytest.mark.parametrize(
    ("requested", "used", "limited", "fits"),
    [
        ("requests.memory=16Gi", "requests.memory=16Gi", "requests.memory=16Gi", True),
        ("memory=17Gi", "memory=16Gi", "memory=16Gi", False),
        ("limits.memory=20Gi", "limits.memory=16384Mi", "limits.memory=20Gi", True),
        ("cpu=8,pods=1", "cpu=8,pods=1", "cpu=8,pods=1", True),
        ("requests.cpu=9", "requests.cpu=8", "requests.cpu=8", False),
        ("cpu=8,memory=17Gi", "cpu=8,memory=16Gi", "cpu=8,memory=16Gi", False),
        ("count/pods=1", "count/pods=5", "count/pods=5", True),
        ("count/secrets=1", "count/secrets=5", "count/secrets=5", False),
        ("limits.cpu=500m", "limits.cpu=4", "limits.cpu=500m", True),
    ],
)
def test_a_quota_has_room_for_what_the_leaving_pod_frees(
    requested: str, used: str, limited: str, *, fits: bool
) -> None:
    assert fits_then(refusal(requested, used, limited), OLD, OLD) is fits


def test_a_quota_may_count_the_pods_of_one_priority_alone() -> None:
    full = refusal("pods=1", "pods=1", "pods=1")
    assert not fits_then(full, template(priority="high"), OLD)
    assert fits_then(full, template(priority="high"), template(priority="high"))


def test_another_refusal_is_no_matter_of_room() -> None:
    assert not fits_then('pods "trial" is forbidden: no PriorityClass with name high was found', OLD, OLD)

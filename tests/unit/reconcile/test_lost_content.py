from __future__ import annotations

from typing import Any

import pytest

from specdec_operator.pod.termination import Failed, encode
from specdec_operator.reconcile.lost_content import Lost, lost_content


def ended(reason: str, at: str) -> dict[str, Any]:
    message = encode(Failed(reason=reason, message="it is not there", terminal=True))
    return {"terminated": {"exitCode": 3, "message": message, "finishedAt": at}}


def pod(*, state: dict[str, Any] | None = None, last: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"status": {"initContainerStatuses": [{"name": "check", "state": state or {}, "lastState": last or {}}]}}


def test_a_missing_engine_puts_engines_in_doubt() -> None:
    found = lost_content([pod(state=ended("EngineMissing", "2026-01-01T00:00:05Z"))])
    assert found == (Lost(kind="Engine", at="2026-01-01T00:00:05Z"),)


@pytest.mark.parametrize("reason", ["ModelMissing", "ModelDamaged", "UnreadableModel", "WeightsMissing"])
def test_a_missing_or_damaged_model_puts_models_in_doubt(reason: str) -> None:
    (found,) = lost_content([pod(state=ended(reason, "2026-01-01T00:00:05Z"))])
    assert found.kind == "Model"


def test_a_check_that_waits_for_its_next_try_still_says_what_it_missed() -> None:
    waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
    (found,) = lost_content([pod(state=waiting, last=ended("EngineDamaged", "2026-01-01T00:00:05Z"))])
    assert found.at == "2026-01-01T00:00:05Z"


def test_a_check_that_passed_meanwhile_misses_nothing() -> None:
    passed = {"terminated": {"exitCode": 0, "message": ""}}
    assert lost_content([pod(state=passed, last=ended("EngineMissing", "2026-01-01T00:00:05Z"))]) == ()


def test_other_failures_put_nothing_in_doubt() -> None:
    assert lost_content([pod(state=ended("DriverTooOld", "2026-01-01T00:00:05Z"))]) == ()


def test_the_latest_look_counts() -> None:
    early, late = (pod(state=ended("EngineMissing", f"2026-01-01T00:00:0{n}Z")) for n in (1, 7))
    (found,) = lost_content([late, early])
    assert found.at == "2026-01-01T00:00:07Z"


def test_a_server_that_starts_again_without_a_check_says_what_it_missed() -> None:
    server = {"name": "server", "state": ended("ModelDamaged", "2026-01-01T00:00:05Z")}
    (found,) = lost_content([{"status": {"containerStatuses": [server]}}])
    assert found.kind == "Model"

from __future__ import annotations

from typing import Any

import pytest

from specdec_operator.api.v1alpha1.model_artifact import ModelArtifactStatus
from specdec_operator.api.v1alpha1.status import Condition
from specdec_operator.reconcile.artifact_conditions import conditions_of

EARLIER = "2026-01-01T00:00:00Z"
NOW = "2026-01-02T00:00:00Z"


def found(state: str, *before: Condition, reason: str = "Why") -> dict[str, Condition]:
    status = ModelArtifactStatus.model_validate({"state": state, "reason": reason, "message": "what"})
    return {c.type: c for c in conditions_of(status, before, generation=3, now=NOW)}


def condition(kind: Any, status: Any) -> Condition:
    return Condition(type=kind, status=status, reason="Before", last_transition_time=EARLIER)


@pytest.mark.parametrize(
    ("state", "types"),
    [
        ("Pending", ["Ready", "Reconciling"]),
        ("Running", ["Ready", "Reconciling"]),
        ("Ready", ["Ready"]),
        ("Failed", ["Ready", "Stalled"]),
    ],
)
def test_reconciling_and_stalled_are_there_only_while_true(state: str, types: list[str]) -> None:
    assert list(found(state)) == types


@pytest.mark.parametrize(
    ("state", "said"), [("Pending", "False"), ("Running", "False"), ("Ready", "True"), ("Failed", "False")]
)
def test_ready_is_true_once_the_content_is_there(state: str, said: str) -> None:
    assert found(state)["Ready"].status == said


def test_reason_and_message_are_the_status_own() -> None:
    stalled = found("Failed", reason="StoreFull")["Stalled"]
    assert (stalled.reason, stalled.message) == ("StoreFull", "what")


def test_a_condition_speaks_of_the_generation_that_was_looked_at() -> None:
    assert found("Ready")["Ready"].observed_generation == 3


def test_the_transition_time_stays_while_the_status_does() -> None:
    assert found("Running", condition("Ready", "False"))["Ready"].last_transition_time == EARLIER


def test_the_transition_time_moves_with_the_status() -> None:
    assert found("Ready", condition("Ready", "False"))["Ready"].last_transition_time == NOW


def test_what_was_not_there_before_is_of_now() -> None:
    assert found("Failed", condition("Ready", "False"))["Stalled"].last_transition_time == NOW

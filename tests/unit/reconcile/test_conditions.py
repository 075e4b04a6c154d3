from __future__ import annotations

from specdec_operator.api.v1alpha1.status import Condition
from specdec_operator.reconcile.conditions import ORDER, WAY, Conditions

EARLIER = "2026-01-01T00:00:00Z"
NOW = "2026-01-02T00:00:00Z"


def before(*conditions: tuple[str, str, str]) -> list[Condition]:
    return [
        Condition.model_validate(
            {"type": kind, "status": status, "reason": reason, "lastTransitionTime": EARLIER, "observedGeneration": 1}
        )
        for kind, status, reason in conditions
    ]


def after(*conditions: tuple[str, str, str]) -> Conditions:
    return Conditions(before(*conditions), generation=2, now=NOW)


def test_the_transition_time_stays_while_the_status_does() -> None:
    found = after(("Ready", "False", "Fetching"))
    found.set("Ready", "False", "Building", "")
    ready = found.get("Ready")
    assert ready
    assert ready.last_transition_time == EARLIER


def test_the_transition_time_moves_with_the_status() -> None:
    found = after(("Ready", "False", "Fetching"))
    found.set("Ready", "True", "Serving", "")
    ready = found.get("Ready")
    assert ready
    assert ready.last_transition_time == NOW


def test_a_new_condition_is_of_now() -> None:
    found = after()
    found.set("Ready", "True", "Serving", "")
    ready = found.get("Ready")
    assert ready
    assert ready.last_transition_time == NOW


def test_a_condition_speaks_of_the_generation_that_was_looked_at() -> None:
    found = after(("Ready", "True", "Serving"))
    found.set("Ready", "True", "Serving", "")
    ready = found.get("Ready")
    assert ready
    assert ready.observed_generation == 2


def test_what_was_not_come_to_is_unknown_whatever_it_was() -> None:
    found = after(("Served", "True", "Answered"))
    (served,) = [c for c in found.in_order() if c.type == "Served"]
    assert (served.status, served.reason) == ("Unknown", "Waiting")


def test_conditions_stand_in_the_order_of_the_way_to_serving() -> None:
    found = after()
    for kind in reversed(ORDER):
        found.set(kind, "True", "Yes", "")
    assert tuple(c.type for c in found.in_order()) == ORDER


def test_reconciling_and_stalled_are_absent_unless_found() -> None:
    assert tuple(c.type for c in after(("Stalled", "True", "Refused")).in_order()) == WAY


def test_a_message_is_cut_to_what_the_schema_allows() -> None:
    found = after()
    found.set("Ready", "False", "Refused", "x" * 3000)
    ready = found.get("Ready")
    assert ready
    assert len(ready.message) == 2048


def test_another_reason_is_a_change() -> None:
    found = after(("Ready", "False", "Fetching"))
    found.set("Ready", "False", "Building", "")
    assert "Ready" in [c.type for c in found.changed()]


def test_another_message_is_no_change() -> None:
    found = after(("Ready", "False", "Fetching"))
    found.set("Ready", "False", "Fetching", "half of it")
    assert "Ready" not in [c.type for c in found.changed()]


def test_only_true_holds() -> None:
    found = after()
    found.set("Served", "Unknown", "ProofUnreachable", "")
    assert not found.holds("Served")

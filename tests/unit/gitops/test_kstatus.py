from __future__ import annotations

from typing import Any

import pytest

from tests.kstatus import MalformedObject, verdict


def custom(
    *conditions: tuple[str, str], generation: int = 2, observed: int | None = 2, **metadata: Any
) -> dict[str, Any]:
    said = [{"type": kind, "status": status, "reason": "Why"} for kind, status in conditions]
    status = {"conditions": said} | ({} if observed is None else {"observedGeneration": observed})
    return {"metadata": {"generation": generation, **metadata}, "status": status}


def test_what_is_being_deleted_is_terminating_whatever_its_conditions() -> None:
    assert verdict(custom(("Ready", "True"), deletionTimestamp="2026-01-01T00:00:00Z")) == "Terminating"


@pytest.mark.parametrize("observed", [-1, 1, 3])
def test_another_generation_than_the_observed_one_is_in_progress(observed: int) -> None:
    assert verdict(custom(("Ready", "True"), observed=observed)) == "InProgress"


def test_an_object_without_an_observed_generation_is_judged_by_its_conditions() -> None:
    assert verdict(custom(("Ready", "True"), observed=None)) == "Current"


def test_stalled_is_failed() -> None:
    assert verdict(custom(("Ready", "False"), ("Stalled", "True"))) == "Failed"


def test_reconciling_is_in_progress_even_while_ready() -> None:
    assert verdict(custom(("Ready", "True"), ("Reconciling", "True"))) == "InProgress"


def test_of_reconciling_and_stalled_the_first_in_the_list_decides() -> None:
    assert verdict(custom(("Stalled", "True"), ("Reconciling", "True"))) == "Failed"
    assert verdict(custom(("Reconciling", "True"), ("Stalled", "True"))) == "InProgress"


def test_what_is_not_true_is_not_there() -> None:
    assert verdict(custom(("Stalled", "False"), ("Reconciling", "Unknown"), ("Ready", "True"))) == "Current"


@pytest.mark.parametrize("status", ["False", "Unknown"])
def test_what_is_not_ready_is_in_progress(status: str) -> None:
    assert verdict(custom(("Ready", status))) == "InProgress"


def test_an_object_that_says_nothing_is_current() -> None:
    assert verdict({"metadata": {"generation": 1}}) == "Current"


def test_a_ready_that_is_no_status_is_passed_over() -> None:
    assert verdict(custom(("Ready", "yes"))) == "Current"


def test_a_generation_that_is_no_number_is_malformed() -> None:
    with pytest.raises(MalformedObject, match="no integer"):
        verdict({"metadata": {"generation": 1}, "status": {"observedGeneration": "1"}})

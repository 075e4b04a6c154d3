from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import pytest

from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModel, parse
from specdec_operator.api.v1alpha1.status import FailedRevision, SpeculativeModelStatus
from specdec_operator.reconcile.conditions import Conditions
from specdec_operator.reconcile.diagnosis import Diagnosis
from specdec_operator.reconcile.halt import Halt
from specdec_operator.reconcile.model_status import Findings, set_available, set_ready, written
from specdec_operator.reconcile.observation import Serving

if TYPE_CHECKING:
    from specdec_operator.reconcile.preparation import Preparation
    from specdec_operator.reconcile.usage import Usage

FAILED = FailedRevision(name="m-2", reason="DriverTooOld", message="the driver is 535")


def model(**spec: Any) -> SpeculativeModel:
    source = {"source": {"huggingFace": {"repository": "a/b"}}}
    return parse(
        {
            "metadata": {"name": "m", "generation": 2},
            "spec": {"target": source, "speculation": {"method": "None"}, **spec},
        }
    )


def serving(*, ready: int = 1, wanted: int = 1, trouble: Diagnosis | None = None) -> Serving:
    return Serving(
        revision="m-1",
        wanted=wanted,
        replicas=wanted,
        ready=ready,
        updated_ready=ready == wanted,
        pods=(),
        service={},
        trouble=trouble,
        deadline_exceeded=False,
    )


def findings(**fields: Any) -> Findings:
    return Findings(usage=cast("Usage", None), preparation=cast("Preparation", None), serving=serving(), **fields)


def conditions(**found: str) -> Conditions:
    made = Conditions((), generation=2, now="2026-01-01T00:00:00Z")
    for kind, status in found.items():
        made.set(cast("Any", kind), cast("Any", status), f"{kind}{status}", f"{kind} is {status}")
    return made


def summary(found: Conditions) -> dict[str, tuple[str, str]]:
    """Ready, Reconciling and Stalled as status and reason."""
    return {c.type: (c.status, c.reason) for c in found.in_order() if c.type in ("Ready", "Reconciling", "Stalled")}


def test_ready_needs_a_served_answer_and_a_pod() -> None:
    found = conditions(Available="True", Served="True")
    set_ready(found, model(), findings(), None)
    assert summary(found) == {"Ready": ("True", "Serving")}


def test_an_answer_without_a_pod_is_not_ready() -> None:
    found = conditions(Available="False", Served="True")
    set_ready(found, model(), findings(), None)
    assert summary(found)["Ready"][0] == "False"


def test_pods_without_a_proof_are_on_the_way() -> None:
    found = conditions(Available="True")
    set_ready(found, model(), findings(), None)
    assert summary(found) == {"Ready": ("False", "AvailableTrue"), "Reconciling": ("True", "AvailableTrue")}


def test_a_proof_that_can_t_be_made_leaves_ready_unknown() -> None:
    found = conditions(Available="True", Served="Unknown")
    set_ready(found, model(), findings(), None)
    assert summary(found) == {"Ready": ("Unknown", "ServedUnknown")}


def test_waiting_is_reconciling() -> None:
    found = conditions()
    set_ready(found, model(), findings(), Halt("ModelsCached", "Fetching", "Job x"))
    assert summary(found) == {"Ready": ("False", "Fetching"), "Reconciling": ("True", "Fetching")}


def test_a_refusal_is_stalled() -> None:
    found = conditions()
    set_ready(found, model(), findings(), Halt("PairVerified", "VocabularyMismatch", "no", terminal=True))
    assert summary(found) == {"Ready": ("False", "VocabularyMismatch"), "Stalled": ("True", "VocabularyMismatch")}


def test_a_change_that_waits_makes_the_served_old_revision_not_ready() -> None:
    found = conditions(Available="True", Served="True")
    set_ready(found, model(), findings(current_revision="m-1"), Halt("EnginesReady", "Building", "Job x"))
    assert summary(found)["Ready"] == ("False", "Building")


def test_a_failed_revision_is_stalled_and_names_the_one_that_serves() -> None:
    found = conditions(Available="True")
    set_ready(found, model(), findings(failed_revision=FAILED, current_revision="m-1"), None)
    ready = found.get("Ready")
    assert ready
    assert (ready.reason, "Revision m-1 serves instead" in ready.message) == ("DriverTooOld", True)


def test_a_failed_first_revision_says_how_to_try_again() -> None:
    found = conditions()
    set_ready(found, model(), findings(failed_revision=FAILED), None)
    stalled = found.get("Stalled")
    assert stalled
    assert "specdec.dev/restart" in stalled.message


def test_a_suspended_model_is_neither_reconciling_nor_stalled() -> None:
    found, seen = conditions(Available="False"), findings()
    seen.serving = serving(ready=0, wanted=0)
    set_ready(found, model(suspend=True), seen, None)
    assert summary(found) == {"Ready": ("False", "Suspended")}


def test_a_model_that_was_suspended_before_it_had_pods_is_suspended() -> None:
    found, seen = conditions(Available="False"), findings()
    seen.serving = None
    set_ready(found, model(suspend=True), seen, None)
    assert summary(found) == {"Ready": ("False", "Suspended")}


@pytest.mark.parametrize("spec", [{"suspend": True}, {"replicas": 0}], ids=["suspended", "no replicas"])
def test_a_model_whose_pods_are_to_stop_is_reconciling_until_the_last_one_did(spec: dict[str, Any]) -> None:
    found, seen = conditions(Available="True"), findings()
    seen.serving = replace(serving(ready=1, wanted=0), replicas=1)
    set_ready(found, model(**spec), seen, None)
    assert summary(found) == {"Ready": ("False", "PodsStopping"), "Reconciling": ("True", "PodsStopping")}


def test_a_model_without_replicas_is_neither_reconciling_nor_stalled() -> None:
    found, seen = conditions(Available="False"), findings()
    seen.serving = serving(ready=0, wanted=0)
    set_ready(found, model(replicas=0), seen, None)
    assert summary(found) == {"Ready": ("False", "NoPods")}


@pytest.mark.parametrize(
    ("seen", "status", "reason"),
    [
        (serving(ready=1, wanted=2), "True", "PodsReady"),
        (serving(ready=0, wanted=1), "False", "PodsStarting"),
        (serving(ready=0, wanted=0), "False", "NoPods"),
        (serving(ready=0, trouble=Diagnosis(reason="Unschedulable", message="no GPU")), "False", "Unschedulable"),
    ],
    ids=["some pods", "no pod yet", "none wanted", "trouble"],
)
def test_available_means_that_any_pod_answers(seen: Serving, status: str, reason: str) -> None:
    found = conditions()
    set_available(found, seen)
    available = found.get("Available")
    assert available
    assert (available.status, available.reason) == (status, reason)


def test_empty_fields_are_left_out_of_what_is_written() -> None:
    fields = written(SpeculativeModelStatus(conditions=[], observed_generation=2))
    assert fields == {"observedGeneration": 2, "replicas": 0, "readyReplicas": 0}

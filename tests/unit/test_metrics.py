from __future__ import annotations

from typing import Literal

from prometheus_client import CollectorRegistry

from specdec_operator.api.v1alpha1.status import Condition
from specdec_operator.cluster.permissions import Permission
from specdec_operator.metrics import Metrics


def ratio(metrics: Metrics) -> float | None:
    return metrics.registry.get_sample_value("specdec_acceptance_ratio", {"namespace": "a", "name": "m"})


def test_a_known_acceptance_is_shown() -> None:
    metrics = Metrics(CollectorRegistry())
    metrics.acceptance(namespace="a", name="m", ratio=0.5)
    assert ratio(metrics) == 0.5


def test_an_acceptance_that_is_no_longer_known_leaves_the_metrics() -> None:
    metrics = Metrics(CollectorRegistry())
    metrics.acceptance(namespace="a", name="m", ratio=0.5)
    metrics.acceptance(namespace="a", name="m", ratio=None)
    assert ratio(metrics) is None


def test_a_model_that_was_never_measured_has_no_figure() -> None:
    metrics = Metrics(CollectorRegistry())
    metrics.acceptance(namespace="a", name="m", ratio=None)
    assert ratio(metrics) is None


def ready(status: Literal["True", "False", "Unknown"], reason: str) -> Condition:
    return Condition(
        type="Ready", status=status, reason=reason, message="", last_transition_time="2026-01-01T00:00:00Z"
    )


def condition_series(metrics: Metrics) -> list[tuple[str, str, str]]:
    """Return name, status and reason of each series of conditions."""
    return [
        (sample.labels["name"], sample.labels["status"], sample.labels["reason"])
        for family in metrics.registry.collect()
        for sample in family.samples
        if sample.name == "specdec_model_condition" and sample.value == 1
    ]


def test_a_condition_is_shown_with_its_status_and_reason() -> None:
    metrics = Metrics(CollectorRegistry())
    metrics.conditions(namespace="a", name="m", conditions=[ready("True", "Serving")])
    assert condition_series(metrics) == [("m", "True", "Serving")]


def test_a_condition_that_has_changed_is_shown_once() -> None:
    metrics = Metrics(CollectorRegistry())
    metrics.conditions(namespace="a", name="m", conditions=[ready("False", "Starting")])
    metrics.conditions(namespace="a", name="m", conditions=[ready("True", "Serving")])
    assert condition_series(metrics) == [("m", "True", "Serving")]


def test_the_conditions_of_a_model_that_is_gone_leave_the_metrics_and_others_stay() -> None:
    metrics = Metrics(CollectorRegistry())
    for name in ("m", "other"):
        metrics.conditions(namespace="a", name=name, conditions=[ready("True", "Serving")])
    metrics.conditions(namespace="a", name="m", conditions=[])
    assert condition_series(metrics) == [("other", "True", "Serving")]


def series(metrics: Metrics, name: str) -> list[tuple[dict[str, str], float]]:
    """Return labels and value of each series of a gauge."""
    return [
        (dict(sample.labels), sample.value)
        for family in metrics.registry.collect()
        for sample in family.samples
        if sample.name == name
    ]


def test_missing_permissions_are_shown_while_they_are_missing() -> None:
    metrics = Metrics(CollectorRegistry())
    jobs = Permission(verb="create", group="batch", resource="jobs", namespace="team")
    metrics.permissions_missing([jobs, Permission(verb="list", resource="pods")])
    metrics.permissions_missing([jobs])
    labels = {"verb": "create", "resource": "jobs.batch", "scope": "team"}
    assert series(metrics, "specdec_operator_missing_permission") == [(labels, 1)]


def test_what_a_crd_lacks_is_counted_by_kind() -> None:
    metrics = Metrics(CollectorRegistry())
    metrics.definitions_outdated({"SpeculativeModel": ("spec.a", "spec.b"), "ModelArtifact": ()})
    found = {labels["kind"]: value for labels, value in series(metrics, "specdec_operator_crd_missing_fields")}
    assert found == {"SpeculativeModel": 2, "ModelArtifact": 0}


def test_a_model_of_another_operator_is_shown_until_it_is_taken_over() -> None:
    metrics = Metrics(CollectorRegistry())
    for name in ("m", "other"):
        metrics.other_controller(namespace="a", name=name, controller="x/y")
    metrics.other_controller(namespace="a", name="m", controller="")
    shown = [labels["name"] for labels, _ in series(metrics, "specdec_model_other_controller")]
    assert shown == ["other"]

from __future__ import annotations

from prometheus_client import CollectorRegistry

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

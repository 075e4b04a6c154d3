"""Alerts and dashboards ask for metrics that there are, and alerts say what to do."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, get_args

import pytest
from prometheus_client import CollectorRegistry

from specdec_operator.api.v1alpha1.status import ConditionType
from specdec_operator.api.yaml_text import read_yaml
from specdec_operator.metrics import Metrics

ROOT = Path(__file__).parents[3]
FILES = ROOT / "charts" / "specdec-operator" / "files"
ALERTS = [rule for group in read_yaml((FILES / "alerts.yaml").read_text()) for rule in group["rules"]]
DASHBOARDS = {path.stem: json.loads(path.read_text()) for path in (FILES / "dashboards").glob("*.json")}
OTHERS: dict[str, set[str]] = {
    # Triton's user guide, "Metrics" (docs/user_guide/metrics.md of triton-inference-server/server).
    "nv_gpu_memory_used_bytes": {"gpu_uuid"},
    "nv_gpu_utilization": {"gpu_uuid"},
    "nv_inference_pending_request_count": {"model", "version"},
    "nv_inference_queue_duration_us": {"model", "version"},
    "nv_inference_request_duration_us": {"model", "version"},
    "nv_inference_request_failure": {"model", "version", "reason"},
    "nv_inference_request_success": {"model", "version"},
    # src/utils/metrics.py of triton-inference-server/vllm_backend.
    "vllm:generation_tokens_total": {"model", "version"},
    "vllm:time_per_output_token_seconds_count": {"model", "version"},
    "vllm:time_to_first_token_seconds_bucket": {"model", "version"},
    "vllm:time_to_first_token_seconds_count": {"model", "version"},
    # "Triton Metrics" in the README of triton-inference-server/tensorrtllm_backend.
    "nv_trt_llm_kv_cache_block_metrics": {"model", "version", "kv_cache_block_type"},
    "nv_trt_llm_request_metrics": {"model", "version", "request_type"},
    # "Inspecting alerts during runtime" in Prometheus' documentation; the rest are the alerts' own labels.
    "ALERTS": {"alertname", "alertstate", "severity", "name"},
}
"""The labels of each metric that is not the operator's, and where it is described."""
SERIES = re.compile(r"([A-Za-z_:][\w:]*)\{([^{}]*)\}")
WORD = re.compile(r"[A-Za-z_:][\w:]*")
NO_METRIC = re.compile(
    r"\{[^{}]*\}|\[[^\]]*\]|\b(?:by|on) \([^)]*\)|\b\w+(?=\()|\b(?:and|or|unless|on|by|sum|max|avg|count|group)\b"
)
"""What stands beside metrics in an expression: selectors, ranges, groupings, functions and operators."""
TARGET_LABELS = {"job", "namespace", "pod", "specdec_dev_model"}
"""Labels that Prometheus gives to all that it reads from a pod."""
STATUSES = {"True", "False", "Unknown"}


def panels(dashboard: dict[str, Any]) -> list[dict[str, Any]]:
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def chosen(label: str, expression: str) -> set[str]:
    """The values by which an expression selects, or excludes."""
    found = re.findall(rf'\b{label}(?:=~|!~|!=|=)"([^"]*)"', expression)
    return {value for values in found for value in values.split("|")}


EXPRESSIONS = [
    *((rule["alert"], rule["expr"]) for rule in ALERTS),
    *(
        (f"{name}: {panel['title']}", target["expr"])
        for name, dashboard in DASHBOARDS.items()
        for panel in panels(dashboard)
        for target in panel["targets"]
    ),
]
each_expression = pytest.mark.parametrize("expression", [e for _, e in EXPRESSIONS], ids=[i for i, _ in EXPRESSIONS])
each_alert = pytest.mark.parametrize("alert", ALERTS, ids=[rule["alert"] for rule in ALERTS])


@pytest.fixture(scope="module")
def labels() -> dict[str, set[str]]:
    """Return the labels of each of the operator's series, by its name."""
    registry = CollectorRegistry()
    Metrics(registry)
    found = {}
    for family in registry._collector_to_names:
        declared = set(family._labelnames)  # type: ignore[attr-defined] # what a metric without series does not tell
        for name in registry._collector_to_names[family]:
            found[name] = declared
    return found


@each_expression
def test_an_expression_asks_for_metrics_that_there_are(expression: str, labels: dict[str, set[str]]) -> None:
    asked = set(WORD.findall(NO_METRIC.sub(" ", expression)))
    assert asked
    assert asked == {name for name, _ in SERIES.findall(expression)}
    assert asked <= set(labels) | set(OTHERS)


@each_expression
def test_an_expression_selects_by_labels_that_the_metric_has(expression: str, labels: dict[str, set[str]]) -> None:
    for name, selectors in SERIES.findall(expression):
        selected = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)\"", selectors))
        assert selected <= (labels | OTHERS)[name] | TARGET_LABELS


@each_expression
def test_an_expression_keeps_labels_that_its_metrics_have(expression: str, labels: dict[str, set[str]]) -> None:
    kept = set(re.findall(r"\w+", " ".join(re.findall(r"\b(?:by|on) \(([^)]*)\)", expression))))
    for name, _ in SERIES.findall(expression):
        assert kept <= (labels | OTHERS)[name] | TARGET_LABELS | ({"le"} if name.endswith("_bucket") else set())


@each_expression
def test_an_expression_names_conditions_that_there_are(expression: str) -> None:
    assert chosen("type", expression) <= set(get_args(ConditionType))
    assert chosen("status", expression) <= STATUSES


@each_expression
def test_an_expression_names_reasons_that_there_are(expression: str) -> None:
    told = re.findall(r"^\| `(\w+)`", (ROOT / "docs" / "conditions.md").read_text(), re.MULTILINE)
    assert chosen("reason", expression) <= set(told)


@each_alert
def test_an_alert_says_what_is_wrong_and_what_to_do(alert: dict[str, Any]) -> None:
    assert alert["annotations"]["summary"]
    assert re.search(r"kubectl |helm |config\.|spec\.", alert["annotations"]["description"])


@each_alert
def test_an_alert_waits_and_is_graded(alert: dict[str, Any]) -> None:
    assert re.fullmatch(r"\d+[mh]", alert["for"])
    assert alert["labels"]["severity"] in ("warning", "critical")


@each_alert
def test_an_alert_looks_at_this_release_alone(alert: dict[str, Any]) -> None:
    assert all('job="OPERATOR_JOB"' in selectors for _, selectors in SERIES.findall(alert["expr"]))


@each_alert
def test_an_alert_shows_only_labels_that_its_expression_keeps(alert: dict[str, Any]) -> None:
    shown = set(re.findall(r"\$labels\.(\w+)", json.dumps(alert["annotations"])))
    kept = {
        label.strip() for group in re.findall(r"(?:by|on) \(([^)]*)\)", alert["expr"]) for label in group.split(",")
    }
    assert shown <= kept


@pytest.mark.parametrize("name", sorted(DASHBOARDS))
def test_every_panel_of_a_dashboard_says_what_it_shows(name: str) -> None:
    assert not [panel["title"] for panel in panels(DASHBOARDS[name]) if not panel.get("description")]


@pytest.mark.parametrize("name", sorted(DASHBOARDS))
def test_no_two_panels_of_a_dashboard_overlap(name: str) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARDS[name]["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not taken & cells
        assert place["x"] + place["w"] <= 24
        taken |= cells


def test_there_is_a_dashboard_for_operators_and_one_for_owners_of_models() -> None:
    assert {dashboard["uid"] for dashboard in DASHBOARDS.values()} == {"specdec-operator", "specdec-models"}


@pytest.mark.parametrize("name", sorted(DASHBOARDS))
def test_a_variable_asks_for_metrics_that_there_are(name: str, labels: dict[str, set[str]]) -> None:
    asked = [v["definition"] for v in DASHBOARDS[name]["templating"]["list"] if v["type"] == "query"]
    assert asked
    for definition in asked:
        (metric, label) = re.fullmatch(r"label_values\((\w+).*, (\w+)\)", definition).groups()  # type: ignore[union-attr]
        assert label in labels[metric] | TARGET_LABELS


@pytest.mark.parametrize("name", sorted(DASHBOARDS))
def test_a_panel_shows_in_its_legend_only_labels_that_its_query_keeps(name: str) -> None:
    for panel in panels(DASHBOARDS[name]):
        for target in panel["targets"]:
            kept = set(re.findall(r"\w+", " ".join(re.findall(r"\bby \(([^)]*)\)", target["expr"]))))
            shown = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            assert shown <= (kept or TARGET_LABELS)


def test_every_alert_is_told_in_a_section_of_its_own() -> None:
    told = re.findall(r"^#### (Specdec\w+)$", (ROOT / "docs" / "operations.md").read_text(), re.MULTILINE)
    assert told == [alert["alert"] for alert in ALERTS]


@each_alert
def test_an_alert_links_to_its_section(alert: dict[str, Any]) -> None:
    assert alert["annotations"]["runbook_url"] == f"DOCUMENTATION/operations.md#{alert['alert'].lower()}"

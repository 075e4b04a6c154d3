"""The chart's alerts and the queries of its dashboards, judged by Prometheus' own promtool."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from testbed.cluster.helm import built_helm
from testbed.cluster.promtool import Promtool, built_promtool
from testbed.operator.chart import CHART, ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from testbed.cluster import Progress

# The first use of promtool and of Helm builds them.
pytestmark = pytest.mark.timeout(1800)

PLAYED = Path(__file__).with_name("alerts.test.yaml")
DASHBOARDS = sorted((CHART / "files" / "dashboards").glob("*.json"))
SHOWN = "--show-only=templates/prometheusrule.yaml"
PUBLISHED = "https://docs.example.com/specdec"
VARIABLE = re.compile(r"\$(?:job|namespace|model)\b")
LABEL_VALUES = re.compile(r"label_values\((?:(.*), )?\w+\)")


@pytest.fixture(scope="module")
def promtool(progress: Progress) -> Promtool:
    return built_promtool(progress)


@pytest.fixture(scope="module")
def rules(progress: Progress, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The rules of a release as the chart renders them, in a folder with what is played."""
    directory = tmp_path_factory.mktemp("alerts")
    values = (
        "--set=monitoring.prometheusRule.enabled=true",
        f"--set=monitoring.prometheusRule.documentation={PUBLISHED}/",
    )
    with built_helm(progress) as helm:
        text = helm.run("template", "specdec-operator", str(CHART), "--namespace=specdec-system", *values, SHOWN)
    file = directory / "rules.yaml"
    file.write_text(yaml.safe_dump(yaml.safe_load(text)["spec"]))
    shutil.copy(PLAYED, directory)
    return file


def alerts(rules: Path) -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(rules.read_text())["groups"] for rule in group["rules"]]


def questions() -> Iterator[list[set[str]]]:
    """Of each scene, which alerts fire at each moment that it asks for."""
    for scene in yaml.safe_load(PLAYED.read_text())["tests"]:
        yield [
            {name for sample in question.get("exp_samples", ()) for name in re.findall(r"Specdec\w+", sample["labels"])}
            for question in scene["promql_expr_test"]
        ]


def queries(dashboard: Path) -> Mapping[str, str]:
    """Each query of a dashboard by a name of its own, with Grafana's variables as Grafana fills them."""
    document = json.loads(dashboard.read_text())
    asked = {
        f"panel_{panel['id']}_{target['refId']}": target["expr"]
        for panel in document["panels"]
        for target in panel.get("targets", ())
    }
    for variable in document["templating"]["list"]:
        if variable["type"] == "query":
            (series,) = LABEL_VALUES.fullmatch(variable["definition"]).groups()  # type: ignore[union-attr]
            asked[f"variable_{variable['name']}"] = series
    return {name: VARIABLE.sub(".*", query.replace("$__rate_interval", "2m")) for name, query in asked.items()}


def test_promtool_finds_nothing_wrong_with_the_alerts(promtool: Promtool, rules: Path) -> None:
    assert f"{len(alerts(rules))} rules found" in promtool.check_rules(rules)


def test_each_alert_fires_when_it_should_and_not_before(promtool: Promtool, rules: Path) -> None:
    assert "SUCCESS" in promtool.play(rules.with_name(PLAYED.name))


def test_every_alert_is_played_both_firing_and_not(rules: Path) -> None:
    turning = {
        name for scene in questions() for fires in scene for name in fires if any(name not in other for other in scene)
    }
    assert {alert["alert"] for alert in alerts(rules)} == turning


def test_every_alert_links_to_where_the_documentation_is_published(rules: Path) -> None:
    links = {alert["alert"]: alert["annotations"]["runbook_url"] for alert in alerts(rules)}
    assert links == {name: f"{PUBLISHED}/operations.md#{name.lower()}" for name in links}


def test_without_a_place_of_the_documentation_no_alert_links_to_it() -> None:
    text = (ROOT / "manifests" / "prometheus" / "prometheus.yaml").read_text()
    assert "alert: SpecdecModelStalled" in text
    assert "runbook_url" not in text


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda path: path.stem)
def test_every_query_of_a_dashboard_is_understood_by_prometheus(
    promtool: Promtool, dashboard: Path, tmp_path: Path
) -> None:
    recorded = [{"record": f"{dashboard.stem}:{name}", "expr": query} for name, query in queries(dashboard).items()]
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": dashboard.stem, "rules": recorded}]}))
    assert f"{len(recorded)} rules found" in promtool.check_rules(file)

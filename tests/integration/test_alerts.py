"""The chart's alerts, played by Prometheus' own promtool where there is one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from testbed.operator.manifests import CHART

PLAYED = Path(__file__).with_name("alerts.test.yaml")
JOB = "specdec-operator-metrics"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A folder with the rules of a release as the chart renders them, and what is played."""
    text = (CHART / "files" / "alerts.yaml").read_text().replace("OPERATOR_JOB", JOB)
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": yaml.safe_load(text)}))
    shutil.copy(PLAYED, tmp_path)
    return tmp_path


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not on PATH")
def test_each_alert_fires_when_it_should_and_not_before(directory: Path) -> None:
    argv = ["promtool", "test", "rules", PLAYED.name]
    finished = subprocess.run(argv, cwd=directory, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stdout + finished.stderr


def test_every_alert_is_played() -> None:
    text = (CHART / "files" / "alerts.yaml").read_text()
    alerts = {rule["alert"] for group in yaml.safe_load(text) for rule in group["rules"]}
    assert {alert for alert in alerts if alert not in PLAYED.read_text()} == set()

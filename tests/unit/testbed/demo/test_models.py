from __future__ import annotations

from typing import Any

import pytest

from testbed.demo.models import Tone, describe, is_stalled, placement, row, serves, short_placement

PAIR = {
    "gpusPerReplica": 2,
    "worldSize": 3,
    "models": [
        {"role": "target", "devices": [1], "participantIds": [2]},
        {"role": "draft", "devices": [0], "participantIds": [1]},
    ],
}


def model(*, ready: str = "Unknown", stalled: str = "", observed: int = 2, **status: Any) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": ready, "reason": "Why", "message": "because"}]
    if stalled:
        conditions.append({"type": "Stalled", "status": stalled, "reason": "Why", "message": "because"})
    return {
        "metadata": {"name": "pair", "generation": 2},
        "spec": {"replicas": 3},
        "status": {"observedGeneration": observed, "conditions": conditions, **status},
    }


def test_a_placement_names_devices_and_ranks_draft_first() -> None:
    assert placement(PAIR) == "2 GPUs, draft 0 | target 1, ranks 1 | 2 of 3"


def test_a_short_placement_leaves_the_roles_out() -> None:
    assert short_placement(PAIR) == "2 GPUs 0|1, ranks 1|2"


def test_one_gpu_without_ranks_is_said_in_the_singular() -> None:
    alone = {"gpusPerReplica": 1, "worldSize": 1, "models": [{"role": "target", "devices": [0]}]}
    assert placement(alone) == "1 GPU, target 0"


@pytest.mark.parametrize("placed", [None, {}])
def test_an_unknown_placement_is_empty(placed: dict[str, Any] | None) -> None:
    assert placement(placed) == ""
    assert short_placement(placed) == ""


def test_a_model_that_the_operator_has_not_seen_is_pending() -> None:
    unseen = {"metadata": {"name": "new", "generation": 1}, "spec": {}}
    assert row(unseen, seconds=0).status == "Pending"


def test_artifacts_are_counted_made_and_needed() -> None:
    artifacts = [{"state": "Ready"}, {"state": "Running"}, {"state": "Failed"}]
    assert row(model(artifacts=artifacts), seconds=0).artifacts == "1/3"


def test_ready_pods_stand_beside_wanted_ones() -> None:
    assert row(model(readyReplicas=2), seconds=0).ready == "2/3"


def test_ready_for_the_current_generation_serves() -> None:
    assert serves(model(ready="True"))


def test_ready_for_an_earlier_generation_does_not_serve() -> None:
    assert not serves(model(ready="True", observed=1))


@pytest.mark.parametrize(
    ("found", "tone"),
    [
        (model(ready="True"), Tone.GOOD),
        (model(), Tone.WAITING),
        (model(ready="False", stalled="True"), Tone.BAD),
        (model(ready="False", stalled="False"), Tone.WAITING),
    ],
)
def test_the_tone_tells_serving_waiting_and_stalled_apart(found: dict[str, Any], tone: Tone) -> None:
    assert row(found, seconds=0).tone == tone


def test_stalled_for_an_earlier_generation_is_not_stalled() -> None:
    assert not is_stalled(model(stalled="True", observed=1))


def test_a_description_holds_each_conditions_reason_and_message() -> None:
    assert "Ready=False Why: because" in describe(model(ready="False"))

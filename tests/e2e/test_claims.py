from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from testbed.demo.models import condition

if TYPE_CHECKING:
    from tests.e2e.place import Place

pytestmark = [
    pytest.mark.realnode,
    pytest.mark.timeout(600),
    pytest.mark.skipif(os.geteuid() != 0, reason="real pods need a real node, which needs root"),
]

PROMPT, ANSWER = "The capital of France is", "Paris, a city on the river Seine."


def test_a_model_in_a_folder_of_a_claim_is_served_from_there(place: Place) -> None:
    place.until_ready("from-claim")
    assert place.answer("from-claim", PROMPT) == ANSWER


def test_models_serve_side_by_side_from_a_volume_that_one_node_may_mount(place: Place) -> None:
    assert place.get("persistentvolumeclaim", "models")["spec"]["accessModes"] == ["ReadWriteOnce"]
    place.until_ready("from-claim")
    place.until_ready("side-by-side")
    assert [place.answer(name, PROMPT) for name in ("from-claim", "side-by-side")] == [ANSWER, ANSWER]


def test_an_engine_build_that_fails_says_the_programs_last_words(place: Place) -> None:
    model = place.until_condition("damaged", "Stalled", "True", "EngineBuildFailed")
    assert "model.norm.weight" in condition(model, "EnginesReady")["message"]


def test_an_engine_build_that_fails_is_tried_once_and_told_by_a_warning_event(place: Place) -> None:
    place.until_condition("damaged", "Stalled", "True", "EngineBuildFailed")
    assert len(place.jobs(place.artifact("damaged", "target-engine")["name"])) == 1
    assert "EngineBuildFailed" in {event["reason"] for event in place.warnings("damaged")}

"""A store loses what was made: it is made again, and the pods go on."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from testbed.demo.models import condition, serves

if TYPE_CHECKING:
    from tests.e2e.place import Place

pytestmark = [
    pytest.mark.realnode,
    pytest.mark.timeout(600),
    pytest.mark.skipif(os.geteuid() != 0, reason="real pods need a real node, which needs root"),
]

PROMPT, ANSWER = "The capital of France is", "Paris, a city on the river Seine."


def test_a_deleted_engine_is_built_again_and_serves(place: Place) -> None:
    before = place.until_ready("loses")
    artifact = place.artifact("loses", "target-engine")["name"]
    place.run_in_store("rm -rf engines")
    place.kubectl("delete", place.serving_pod_name("loses"), "--wait=false")
    place.until("loses", "the loss is seen", lambda model: condition(model, "Ready")["status"] == "False")
    place.until("loses", "served again", serves, seconds=360)

    assert place.answer("loses", PROMPT) == ANSWER
    assert [job for job in place.jobs(artifact) if job.endswith("-verify")]
    assert place.model("loses")["status"]["currentRevision"] == before["status"]["currentRevision"]
    assert "failedRevision" not in place.model("loses")["status"]


@pytest.mark.parametrize("how", ["in a new pod", "in the same pod"])
def test_a_model_that_was_cut_is_fetched_again_and_serves(place: Place, how: str) -> None:
    before = place.until_ready("loses")
    artifact = place.artifact("loses", "target")["name"]
    fetched = place.kubectl("get", "modelartifact", artifact, "--output=jsonpath={.status.attempts}")
    place.run_in_store("truncate -s 1000 models/*/model.safetensors")
    if how == "in a new pod":
        place.kubectl("delete", place.serving_pod_name("loses"), "--wait=false")
    else:
        # A container that starts again does so without the check of a new pod.
        place.kubectl("exec", place.serving_pod_name("loses"), "--", "python3", "-c", "import os; os.kill(1, 15)")
    place.until("loses", "the loss is seen", lambda model: condition(model, "Ready")["status"] == "False")
    place.until("loses", "served again", serves, seconds=360)

    assert place.answer("loses", PROMPT) == ANSWER
    again = place.kubectl("get", "modelartifact", artifact, "--output=jsonpath={.status.attempts}")
    assert int(again) > int(fetched)
    assert place.model("loses")["status"]["currentRevision"] == before["status"]["currentRevision"]

"""vLLM inside Triton: each method that it has, in a real pod."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from testbed.demo.prompt import logged_counts
from testbed.played_releases import release_name
from tests.e2e.answers import PROMPT, answer_of_the_target_alone, completion, counted_answer, until_row_ready
from tests.e2e.rows import DRAFT_TOKENS, VLLM_ROWS

if TYPE_CHECKING:
    from tests.e2e.place import Place

pytestmark = [
    pytest.mark.realnode,
    pytest.mark.timeout(660),
    pytest.mark.skipif(os.geteuid() != 0, reason="real pods need a real node, which needs root"),
]

MODEL = "vllm_model"
DRAFTING = [name for name in VLLM_ROWS if name != "baseline"]
LENGTH = {"num_speculative_tokens": DRAFT_TOKENS}
DRAFT = {"model": "/models/draft"}
HEAD = {"model": "/models/eagle-draft"}
SPECULATIVE_CONFIGS: dict[str, Any] = {
    "baseline": None,
    "eagle": {"method": "eagle", **HEAD, **LENGTH},
    "draft-model": {"method": "draft_model", **DRAFT, **LENGTH, "draft_tensor_parallel_size": 1},
    "n-gram": {"method": "ngram", **LENGTH, "prompt_lookup_max": 2, "prompt_lookup_min": 1},
    "eagle3-open-ai": {"method": "eagle3", **DRAFT, **LENGTH},
    "flat-keys": None,
}


def arguments(place: Place, name: str) -> dict[str, Any]:
    """Return vLLM's arguments as the server read them."""
    file = f"/repository/{MODEL}/1/model.json"
    read: dict[str, Any] = json.loads(
        place.kubectl("exec", place.serving_pod_name(name), "--container=server", "--", "cat", file)
    )
    return read


@pytest.mark.parametrize("name", VLLM_ROWS)
def test_a_row_answers_through_its_service_as_the_target_alone_does(place: Place, name: str) -> None:
    until_row_ready(place, name)
    assert place.answer(name, PROMPT) == answer_of_the_target_alone(PROMPT)


@pytest.mark.parametrize("name", DRAFTING)
def test_a_rows_drafts_are_really_accepted(place: Place, name: str) -> None:
    until_row_ready(place, name)
    counted = counted_answer(place, name, PROMPT, model=MODEL)
    assert 0 < counted.accepted <= counted.drafted


@pytest.mark.parametrize("name", VLLM_ROWS)
def test_the_server_was_told_to_speculate_as_the_row_says(place: Place, name: str) -> None:
    until_row_ready(place, name)
    assert arguments(place, name).get("speculative_config") == SPECULATIVE_CONFIGS[name]


def test_an_old_release_is_told_by_keys_of_their_own(place: Place) -> None:
    until_row_ready(place, "flat-keys")
    read = arguments(place, "flat-keys")
    assert (read["speculative_model"], read["num_speculative_tokens"]) == ("/models/eagle-draft", DRAFT_TOKENS)


@pytest.mark.parametrize("name", VLLM_ROWS)
def test_status_tells_what_serves_a_row_and_where(place: Place, name: str) -> None:
    status = until_row_ready(place, name)["status"]
    placed = status["placement"]
    assert status["backend"] == "VLLM"
    assert (placed["gpusPerReplica"], placed["models"][0]["devices"]) == (1, [0])
    assert (status["endpoint"]["modelName"], placed["orchestration"]) == (MODEL, "Single")


@pytest.mark.parametrize("name", [name for name in VLLM_ROWS if name != "flat-keys"])
def test_status_tells_which_release_was_taken(place: Place, name: str) -> None:
    pins = {pin["name"]: pin["value"] for pin in until_row_ready(place, name)["status"]["pins"]}
    assert pins["runtime.release"] == release_name("26.02")


def test_openai_s_protocol_is_served_beside_triton_s_and_drafts_as_well(place: Place) -> None:
    until_row_ready(place, "eagle3-open-ai")
    before = logged_counts(place.log("eagle3-open-ai"), model=MODEL)
    assert completion(place, "eagle3-open-ai", PROMPT).strip() == answer_of_the_target_alone(PROMPT)
    drafted, accepted = logged_counts(place.log("eagle3-open-ai"), model=MODEL)[len(before)]
    assert 0 < accepted <= drafted

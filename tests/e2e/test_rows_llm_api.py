"""TensorRT-LLM's LLM API: each method that it has, in a real pod, and those that it has not."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from testbed.demo.models import condition
from tests.e2e.answers import PROMPT, answer_of_the_target_alone, counted_answer, until_row_ready
from tests.e2e.rows import DRAFT_TOKENS, LLM_API_ROWS

if TYPE_CHECKING:
    from tests.e2e.place import Place

pytestmark = [
    pytest.mark.realnode,
    pytest.mark.timeout(660),
    pytest.mark.skipif(os.geteuid() != 0, reason="real pods need a real node, which needs root"),
]

MODEL = "tensorrt_llm"
DRAFT = {"speculative_model_dir": "/models/draft", "max_draft_len": DRAFT_TOKENS}
SPECULATIVE_CONFIGS: dict[str, dict[str, Any]] = {
    "draft-target": {"decoding_type": "DraftTarget", **DRAFT},
    "other-spelling": {"decoding_type": "Draft_Target", **DRAFT},
    "n-gram": {"decoding_type": "NGram", "max_draft_len": DRAFT_TOKENS, "max_matching_ngram_size": 2},
    "mtp": {"decoding_type": "MTP", "num_nextn_predict_layers": 1},
    "reporting": {"decoding_type": "Eagle", **DRAFT},
}
INSTEAD = {
    "medusa": "the LLM API has no MEDUSA",
    "lookahead": "the LLM API has no lookahead decoding",
    "redrafter": "the LLM API has no ReDrafter",
}


def speculative_config(place: Place, name: str) -> dict[str, Any]:
    """Return what the server read of how to speculate."""
    file = f"/repository/{MODEL}/1/model.yaml"
    text = place.kubectl("exec", place.serving_pod_name(name), "--container=server", "--", "cat", file)
    read: dict[str, Any] = yaml.safe_load(text)["speculative_config"]
    return read


@pytest.mark.parametrize("name", LLM_API_ROWS)
def test_a_row_answers_through_its_service_as_the_target_alone_does(place: Place, name: str) -> None:
    until_row_ready(place, name)
    assert place.answer(name, PROMPT) == answer_of_the_target_alone(PROMPT)


@pytest.mark.parametrize("name", LLM_API_ROWS)
def test_a_rows_drafts_are_really_accepted(place: Place, name: str) -> None:
    until_row_ready(place, name)
    counted = counted_answer(place, name, PROMPT, model=MODEL)
    assert 0 < counted.accepted <= counted.drafted


@pytest.mark.parametrize("name", LLM_API_ROWS)
def test_the_server_was_told_to_speculate_as_the_row_says(place: Place, name: str) -> None:
    until_row_ready(place, name)
    assert speculative_config(place, name) == SPECULATIVE_CONFIGS[name]


@pytest.mark.parametrize("name", LLM_API_ROWS)
def test_status_tells_what_serves_a_row_and_where(place: Place, name: str) -> None:
    status = until_row_ready(place, name)["status"]
    placed = status["placement"]
    assert (status["backend"], status["endpoint"]["modelName"]) == ("LLMAPI", MODEL)
    assert (placed["gpusPerReplica"], placed["orchestration"]) == (1, "Single")


def test_accepted_drafts_are_a_verdict_where_the_release_counts_them(place: Place) -> None:
    until_row_ready(place, "reporting")
    model = place.until_condition("reporting", "PairEffective", "True", "AcceptanceMeasured")
    assert model["status"]["acceptance"] == "Effective"


def test_the_share_of_accepted_drafts_is_a_gauge(place: Place) -> None:
    model = place.until_condition("reporting", "PairEffective", "True")
    proof = model["status"]["proof"]
    ratio = asyncio.run(place.session.operator.gauge("specdec_acceptance_ratio", name="reporting"))
    assert ratio == pytest.approx(proof["accepted"] / proof["drafted"])


def test_acceptance_is_unknown_where_the_release_does_not_count(place: Place) -> None:
    model = until_row_ready(place, "draft-target")
    assert condition(model, "PairEffective")["reason"] == "AcceptanceNotReported"
    assert model["status"]["acceptance"] == "Unknown"


@pytest.mark.parametrize(("name", "why"), INSTEAD.items())
def test_what_the_llm_api_lacks_is_refused_with_what_to_use_instead(place: Place, name: str, why: str) -> None:
    model = place.until_condition(name, "Accepted", "False", "MethodNotOnBackend")
    message = condition(model, "Accepted")["message"]
    assert why in message
    assert "TensorRTEngine" in message
    assert not model["status"].get("artifacts")

"""Engines: each method that they have, built and served in real pods, and one that they have not."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Any

import pytest

from testbed.demo.models import condition
from testbed.played_releases import release_name
from tests.e2e.answers import (
    PROMPT,
    READY_SECONDS,
    answer_of_the_target_alone,
    counted_answer,
    until_row_ready,
)
from tests.e2e.rows import DRAFT_TOKENS, ENGINE_ROWS, POD, PREBUILT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.e2e.place import Place

pytestmark = [
    pytest.mark.realnode,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(os.geteuid() != 0, reason="real pods need a real node, which needs root"),
]

ONE_ENGINE, PAIR = "ensemble", "tensorrt_llm_bls"
PAIRS = ["one-gpu", "own-gpus"]
DRAFTING = [name for name in ENGINE_ROWS if name != "pipeline"]
ROWS = [*ENGINE_ROWS, "prebuilt"]
PARAMETER = re.compile(r'parameters \{\s*key: "(\w+)"\s*value \{\s*string_value: "([^"]*)"\s*\}\s*\}')
SPAWNING = {"TRTLLM_ORCHESTRATOR": "1", "TRTLLM_ORCHESTRATOR_SPAWN_PROCESSES": "1"}
# What config.pbtxt of the target's engine must say of a row.
PARAMETERS: dict[str, dict[str, str]] = {
    "eagle": {"decoding_mode": "eagle", "eagle_choices": "{0}, {1}, {0, 0}, {0, 1}, {1, 0}, {0, 0, 0}"},
    "medusa": {"decoding_mode": "medusa", "medusa_choices": "{0}, {1}, {0, 0}, {0, 1}, {0, 0, 0}"},
    "one-gpu": {"gpu_device_ids": "0", "enable_kv_cache_reuse": "true", "exclude_input_in_output": "false"},
    "own-gpus": {"gpu_device_ids": "1,2", "enable_kv_cache_reuse": "true", "exclude_input_in_output": "false"},
    "lookahead": {
        "decoding_mode": "lookahead",
        "lookahead_window_size": "3",
        "lookahead_ngram_size": "3",
        "lookahead_verification_set_size": "3",
    },
    "redrafter": {"decoding_mode": "redrafter"},
    "pipeline": {"gpu_device_ids": "0,1"},
    "prebuilt": {"gpu_device_ids": "0", "gpt_model_path": "/engines/target"},
}
# Drafted tokens per step that an engine was built for.
DRAFT_LENGTHS = {"eagle": 6, "medusa": 5, "own-gpus": DRAFT_TOKENS, "lookahead": 11, "redrafter": 6, "pipeline": 0}
ALONE = ("eagle", "medusa", "lookahead", "redrafter", "prebuilt")
# GPUs, devices by role, MPI processes started with the pod, how they find each other.
PLACEMENTS: dict[str, tuple[int, dict[str, list[int]], int, str]] = {
    **{name: (1, {"target": [0]}, 1, "Single") for name in ALONE},
    "one-gpu": (1, {"target": [0], "draft": [0]}, 1, "SpawningOrchestrator"),
    "own-gpus": (3, {"target": [1, 2], "draft": [0]}, 1, "SpawningOrchestrator"),
    "pipeline": (2, {"target": [0, 1]}, 2, "Leader"),
}


@pytest.fixture(scope="module", autouse=True)
def prebuilt(entered: Place) -> None:
    """Apply the row whose engine somebody else built, once it is built."""
    entered.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/filler", f"--timeout={READY_SECONDS:g}s")
    entered.apply_model("prebuilt", {"pod": POD, **PREBUILT})


def read(place: Place, name: str, file: str) -> str:
    """Return a file as the server reads it."""
    return place.kubectl("exec", place.serving_pod_name(name), "--container=server", "--", "cat", file)


def parameters(place: Place, name: str, model: str = "tensorrt_llm") -> dict[str, str]:
    """Return the parameters of a Triton model's config.pbtxt."""
    return dict(PARAMETER.findall(read(place, name, f"/repository/{model}/config.pbtxt")))


def engine_config(place: Place, name: str, role: str = "target") -> Mapping[str, Any]:
    """Return what an engine says of itself."""
    config: Mapping[str, Any] = json.loads(read(place, name, f"/engines/{role}/config.json"))
    return config


@pytest.mark.parametrize("name", ROWS)
def test_a_row_answers_through_its_service_as_the_target_alone_does(place: Place, name: str) -> None:
    until_row_ready(place, name)
    assert place.answer(name, PROMPT) == answer_of_the_target_alone(PROMPT)


@pytest.mark.parametrize("name", DRAFTING)
def test_a_rows_drafts_are_really_accepted(place: Place, name: str) -> None:
    until_row_ready(place, name)
    counted = counted_answer(place, name, PROMPT, model=PAIR if name in PAIRS else "tensorrt_llm")
    assert 0 < counted.accepted <= counted.drafted


@pytest.mark.parametrize("name", ROWS)
def test_the_engines_configuration_says_what_the_row_needs(place: Place, name: str) -> None:
    until_row_ready(place, name)
    assert PARAMETERS[name].items() <= parameters(place, name).items()


@pytest.mark.parametrize(("name", "length"), DRAFT_LENGTHS.items())
def test_an_engine_is_built_for_the_rows_draft_length(place: Place, name: str, length: int) -> None:
    until_row_ready(place, name)
    assert engine_config(place, name)["build_config"]["max_draft_len"] == length


@pytest.mark.parametrize("name", ROWS)
def test_status_tells_what_serves_a_row_and_where(place: Place, name: str) -> None:
    status = until_row_ready(place, name)["status"]
    placed = status["placement"]
    devices = {model["role"]: model["devices"] for model in placed["models"]}
    where = (placed["gpusPerReplica"], devices, placed["worldSize"], placed["orchestration"])
    assert where == PLACEMENTS[name]
    assert (status["backend"], status["endpoint"]["modelName"]) == (
        "TensorRTEngine",
        PAIR if name in PAIRS else ONE_ENGINE,
    )


@pytest.mark.parametrize("name", ROWS)
def test_status_tells_which_release_was_taken(place: Place, name: str) -> None:
    pins = {pin["name"]: pin["value"] for pin in until_row_ready(place, name)["status"]["pins"]}
    assert pins["runtime.release"] == release_name("26.02")


@pytest.mark.parametrize("name", ROWS)
def test_only_a_pair_of_two_engines_has_processes_that_the_server_starts_itself(place: Place, name: str) -> None:
    until_row_ready(place, name)
    variables = dict(entry.split("=", 1) for entry in read(place, name, "/proc/1/environ").split("\0") if "=" in entry)
    orchestration = {key: value for key, value in variables.items() if key.startswith("TRTLLM_ORCHESTRATOR")}
    assert orchestration == (SPAWNING if name in PAIRS else {})


def test_each_stage_of_a_pipeline_has_a_rank(place: Place) -> None:
    until_row_ready(place, "pipeline")
    ranks = re.findall(r"tensorrt_llm: rank=(\d) world_size=2 role=(\w+) participants=0,1", place.log("pipeline"))
    assert set(ranks) == {("0", "leader"), ("1", "participant")}


def test_the_draft_of_a_pair_has_its_own_gpu_in_its_configuration(place: Place) -> None:
    until_row_ready(place, "own-gpus")
    assert parameters(place, "own-gpus", "tensorrt_llm_draft")["gpu_device_ids"] == "0"


def test_two_models_on_one_gpu_share_its_memory(place: Place) -> None:
    until_row_ready(place, "one-gpu")
    caches = [parameters(place, "one-gpu", f"tensorrt_llm{suffix}") for suffix in ("", "_draft")]
    assert all(int(cache["max_tokens_in_paged_kv_cache"]) > 0 for cache in caches)


def test_only_the_model_that_asks_for_it_is_quantized(place: Place) -> None:
    until_row_ready(place, "one-gpu")
    made = [engine_config(place, "one-gpu", role)["pretrained_config"]["quantization"] for role in ("target", "draft")]
    assert [quantization["quant_algo"] for quantization in made] == ["FP8", None]


def test_engines_of_drafts_that_are_the_same_are_built_once(place: Place) -> None:
    for name in ("one-gpu", "own-gpus"):
        until_row_ready(place, name)
    engine = place.artifact("own-gpus", "draft-engine")["name"]
    assert engine == place.artifact("one-gpu", "draft-engine")["name"]
    assert len(place.jobs(engine)) == 1


def test_an_engine_that_somebody_else_built_is_looked_at_without_a_gpu(place: Place) -> None:
    until_row_ready(place, "prebuilt")
    (name,) = place.jobs(place.artifact("prebuilt", "target-engine")["name"])
    containers = place.get("job", name)["spec"]["template"]["spec"]["containers"]
    assert not any("nvidia.com/gpu" in each["resources"].get("limits", {}) for each in containers)


def test_eagle_2_is_refused_with_what_to_use_instead(place: Place) -> None:
    model = place.until_condition("eagle2", "Accepted", "False", "MethodNotOnBackend")
    message = condition(model, "Accepted")["message"]
    assert "EAGLE-2's dynamic tree can't be reached through Triton" in message
    assert "use Eagle on TensorRTEngine with the same head and a fixed tree" in message
    assert not model["status"].get("artifacts")

"""The simulator image with vLLM: a real tritonserver, and a vllm backend that really speculates."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import testbed.hub
from testbed.cluster.cache import cache_directory
from testbed.runtime.simulator.release import VLLM_IMAGE_REFERENCE
from tests.e2e.simulator_root import SimulatorRoot

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from tests.e2e.simulator_root import RunningServer

pytestmark = [
    pytest.mark.realnode,
    pytest.mark.timeout(900),
    pytest.mark.skipif(os.geteuid() != 0, reason="unpacking and entering a root file system needs root"),
]

PROMPT = "The capital of France is"
ANSWER = " Paris, a city on the river Seine."
GREEDY = json.dumps({"max_tokens": 16, "temperature": 0})
DRAFT = {"method": "draft_model", "model": "/models/tiny-llama-draft", "num_speculative_tokens": 3}
CONFIG = """backend: "vllm"
instance_group [ { count: 1 kind: KIND_MODEL } ]
parameters { key: "REPORT_CUSTOM_METRICS" value { string_value: "true" } }
parameters { key: "ENABLE_VLLM_HEALTH_CHECK" value { string_value: "true" } }
"""
EXPLICIT = ("--model-control-mode=explicit", "--load-model=pair")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> SimulatorRoot:
    models = Path(testbed.hub.__file__).parent / "models" / "specdec-testbed"
    directory = tmp_path_factory.mktemp("vllm")
    return SimulatorRoot(directory, cache=cache_directory(), models=models, reference=VLLM_IMAGE_REFERENCE)


def serving(
    root: SimulatorRoot,
    name: str,
    *,
    auto_complete: bool = True,
    environment: dict[str, str] | None = None,
    config: str = CONFIG,
    **arguments: Any,
) -> AbstractContextManager[RunningServer]:
    """Serve a model called `pair` from a repository of this name."""
    model = root.root / name / "pair"
    (model / "1").mkdir(parents=True)
    (model / "config.pbtxt").write_text(config)
    (model / "1" / "model.json").write_text(json.dumps({"model": "/models/tiny-llama", **arguments}))
    return root.serving(name, auto_complete=auto_complete, arguments=EXPLICIT, environment=environment)


@pytest.fixture(scope="module")
def pair(root: SimulatorRoot) -> Iterator[RunningServer]:
    with serving(root, "pair-repository", speculative_config=DRAFT) as server:
        server.wait_until_ready("pair")
        yield server


def test_the_answer_is_the_targets(pair: RunningServer) -> None:
    answer = pair.ask("pair", text_input=PROMPT, sampling_parameters=GREEDY, exclude_input_in_output=True)
    assert answer["text_output"] == ANSWER


def test_the_prompt_is_prepended_unless_it_is_excluded(pair: RunningServer) -> None:
    assert pair.ask("pair", text_input=PROMPT, sampling_parameters=GREEDY)["text_output"] == PROMPT + ANSWER


def test_sampling_may_stand_in_the_requests_parameters(pair: RunningServer) -> None:
    answer = pair.ask("pair", text_input=PROMPT, parameters={"temperature": 0, "max_tokens": 1})
    assert answer["text_output"] == f"{PROMPT} P"


def test_further_outputs_come_when_they_are_asked_for(pair: RunningServer) -> None:
    wanted = {"return_finish_reason": True, "return_num_output_tokens": True}
    answer = pair.ask("pair", text_input=PROMPT, sampling_parameters='{"temperature": 0, "max_tokens": 3}', **wanted)
    assert (answer["finish_reason"], answer["num_output_tokens"]) == ("length", 3)


def test_a_stream_has_one_event_per_step_and_no_prompt(pair: RunningServer) -> None:
    pieces = pair.stream("pair", text_input=PROMPT, sampling_parameters=GREEDY, stream=True)
    assert len(pieces) > 1
    assert "".join(str(piece["text_output"]) for piece in pieces) == ANSWER


def test_a_stream_that_shall_hold_the_prompt_is_an_error(pair: RunningServer) -> None:
    answer = pair.ask("pair", text_input=PROMPT, stream=True, exclude_input_in_output=False)
    assert "`exclude_input_in_output` = False is not allowed" in answer["error"]


def test_an_unknown_sampling_parameter_is_an_error(pair: RunningServer) -> None:
    answer = pair.ask("pair", text_input=PROMPT, sampling_parameters='{"max_new_tokens": 3}')
    assert answer["error"].startswith("Error generating stream")


def test_the_mean_acceptance_length_follows_from_the_metrics(pair: RunningServer) -> None:
    names = ("generation_tokens_total", "time_to_first_token_seconds_count", "time_per_output_token_seconds_count")
    before = [pair.metrics(f"vllm:{name}") for name in names]
    pair.ask("pair", text_input=PROMPT, sampling_parameters=GREEDY)
    tokens, first, later = (pair.metrics(f"vllm:{name}") - was for name, was in zip(names, before, strict=True))
    assert 1.2 < (tokens - first) / later <= 4


def test_a_target_alone_gives_one_token_per_step(root: SimulatorRoot) -> None:
    with serving(root, "alone-repository") as server:
        server.wait_until_ready("pair")
        assert server.ask("pair", text_input=PROMPT, sampling_parameters=GREEDY)["text_output"] == PROMPT + ANSWER
        tokens = server.metrics("vllm:generation_tokens_total") - server.metrics(
            "vllm:time_to_first_token_seconds_count"
        )
        assert tokens == server.metrics("vllm:time_per_output_token_seconds_count") > 0


def test_without_auto_completion_the_model_does_not_load(root: SimulatorRoot) -> None:
    with serving(root, "uncompleted-repository", auto_complete=False) as server:
        assert server.process.wait(timeout=60) != 0


def test_a_flat_key_fails_the_load(root: SimulatorRoot) -> None:
    with serving(root, "flat-repository", speculative_model="/models/tiny-llama-draft") as server:
        assert server.process.wait(timeout=60) != 0
        assert "AsyncEngineArgs.__init__() got an unexpected keyword argument 'speculative_model'" in server.log


def test_an_older_version_takes_flat_keys(root: SimulatorRoot) -> None:
    flat: dict[str, Any] = {"speculative_model": "/models/tiny-llama-draft", "num_speculative_tokens": 3}
    with serving(root, "older-repository", environment={"SIMULATOR_VLLM_VERSION": "0.8.1"}, **flat) as server:
        server.wait_until_ready("pair")
        assert server.ask("pair", text_input=PROMPT, sampling_parameters=GREEDY)["text_output"] == PROMPT + ANSWER


def test_several_gpus_want_kind_model(root: SimulatorRoot) -> None:
    with serving(root, "kind-repository", config='backend: "vllm"', tensor_parallel_size=2) as server:
        assert server.process.wait(timeout=60) != 0
        assert "please specify KIND_MODEL" in server.log


def test_a_dead_engine_makes_its_model_not_ready_where_health_is_checked(root: SimulatorRoot) -> None:
    with serving(root, "dying-repository", environment={"SIMULATOR_VLLM_DIES_AFTER": "1"}) as server:
        server.wait_until_ready("pair")
        server.ask("pair", text_input=PROMPT, sampling_parameters=GREEDY)
        assert "unhealthy vLLM engine" in server.ask("pair", text_input=PROMPT, sampling_parameters=GREEDY)["error"]
        server.wait_until_not_ready("pair")


def test_a_dead_engine_leaves_its_model_ready_where_it_is_not(root: SimulatorRoot) -> None:
    config = CONFIG.replace("ENABLE_VLLM_HEALTH_CHECK", "DISABLED")
    with serving(root, "dead-repository", environment={"SIMULATOR_VLLM_DIES_AFTER": "0"}, config=config) as server:
        server.wait_until_ready("pair")
        assert "EngineCore encountered an issue" in server.ask("pair", text_input=PROMPT)["error"]
        server.wait_until_ready("pair")

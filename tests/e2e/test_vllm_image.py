"""The simulator image with vLLM: a real tritonserver, and a vllm backend that really speculates."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Any

import pytest

from testbed.operator.chart import CHART
from tests.e2e.simulator_root import free_ports

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from contextlib import AbstractContextManager

    from tests.e2e.simulator_root import RunningServer, SimulatorRoot

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
DASHBOARD = CHART / "files" / "dashboards" / "models.json"
EXPLICIT = ("--model-control-mode=explicit", "--load-model=pair")


@pytest.fixture(scope="module")
def root(vllm_root: SimulatorRoot) -> SimulatorRoot:
    return vllm_root


def place(root: SimulatorRoot, name: str, *, config: str, arguments: Mapping[str, Any]) -> None:
    """Write a repository of this name that holds a model called `pair`."""
    model = root.root / name / "pair"
    (model / "1").mkdir(parents=True)
    (model / "config.pbtxt").write_text(config)
    (model / "1" / "model.json").write_text(json.dumps({"model": "/models/tiny-llama", **arguments}))


def serving(
    root: SimulatorRoot,
    name: str,
    *,
    auto_complete: bool = True,
    environment: dict[str, str] | None = None,
    config: str = CONFIG,
    **arguments: Any,
) -> AbstractContextManager[RunningServer]:
    """Serve the model `pair` from a repository of this name."""
    place(root, name, config=config, arguments=arguments)
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


def test_tritons_metrics_that_a_dashboard_shows_are_exported(pair: RunningServer) -> None:
    pair.ask("pair", text_input=PROMPT, sampling_parameters=GREEDY)
    shown = set(re.findall(r"\b(nv_inference_\w+|vllm:\w+)\{", DASHBOARD.read_text()))
    exported = set(re.findall(r"^([\w:]+)\{", pair.exported(), re.MULTILINE))
    assert shown
    assert shown <= exported


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


@pytest.fixture(scope="module")
def front_end(root: SimulatorRoot) -> Iterator[RunningServer]:
    """The OpenAI front end before the model `pair`; the third port is its own."""
    place(root, "front-repository", config=CONFIG, arguments={"speculative_config": DRAFT})
    ports = free_ports()
    command = ["python3", "/opt/tritonserver/python/openai/openai_frontend/main.py", "--backend=vllm"]
    command += ["--model-repository=/front-repository", "--tokenizer=/models/tiny-llama", "--enable-kserve-frontends"]
    command += [f"--openai-port={ports[2]}", f"--kserve-http-port={ports[0]}", f"--kserve-grpc-port={ports[1]}"]
    with root.running("front", ports, command, environment={}) as server:
        server.wait_until_ready("pair")
        server.wait_until(f"http://127.0.0.1:{ports[2]}/health/ready")
        yield server


def openai(server: RunningServer, path: str, **document: Any) -> dict[str, Any]:
    return server.post(f"http://127.0.0.1:{server.ports[2]}{path}", {"model": "pair", **document})


def test_the_openai_front_end_answers_a_completion(front_end: RunningServer) -> None:
    answer = openai(front_end, "/v1/completions", prompt=PROMPT, max_tokens=32, temperature=0)
    (choice,) = answer["choices"]
    assert (choice["text"], choice["finish_reason"], answer["object"]) == (ANSWER, "stop", "text_completion")


def test_the_openai_front_end_stops_after_sixteen_tokens(front_end: RunningServer) -> None:
    answer = openai(front_end, "/v1/completions", prompt="What is speculative decoding?", temperature=0)
    assert (answer["choices"][0]["finish_reason"], answer["usage"]["completion_tokens"]) == ("length", 16)


def test_the_openai_front_end_streams(front_end: RunningServer) -> None:
    document = {"model": "pair", "prompt": PROMPT, "max_tokens": 32, "temperature": 0, "stream": True}
    events = front_end.events(f"http://127.0.0.1:{front_end.ports[2]}/v1/completions", document)
    assert events[-1] == "[DONE]"
    assert "".join(json.loads(event)["choices"][0]["text"] for event in events[:-1]) == ANSWER


def test_the_openai_front_end_wants_a_chat_template(front_end: RunningServer) -> None:
    answer = openai(front_end, "/v1/chat/completions", messages=[{"role": "user", "content": PROMPT}])
    assert "chat_template is not set" in answer["detail"]


def test_the_openai_front_end_knows_its_models_alone(front_end: RunningServer) -> None:
    assert openai(front_end, "/v1/completions", model="other", prompt=PROMPT)["detail"] == "Unknown model: other"


def test_the_models_own_endpoint_stays_open_beside_the_front_end(front_end: RunningServer) -> None:
    assert front_end.ask("pair", text_input=PROMPT, sampling_parameters=GREEDY)["text_output"] == PROMPT + ANSWER


def test_the_servers_metrics_are_on_the_front_ends_port(front_end: RunningServer) -> None:
    assert front_end.metrics("nv_inference_request_success") > 0


def test_the_front_end_ends_with_its_server(root: SimulatorRoot) -> None:
    place(root, "broken-repository", config=CONFIG, arguments={"unknown": 1})
    command = ["python3", "/opt/tritonserver/python/openai/openai_frontend/main.py"]
    command += ["--model-repository=/broken-repository", "--openai-port=0"]
    with root.running("broken", free_ports(), command, environment={}) as server:
        assert server.process.wait(timeout=60) != 0

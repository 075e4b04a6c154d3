from __future__ import annotations

import os
import re
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import testbed.hub
from testbed.demo.models import condition
from testbed.demo.prompt import logged_counts
from testbed.runtime.inference.llama import LlamaModel
from testbed.runtime.inference.speculation import generate
from testbed.runtime.inference.tokenizer import TextTokenizer
from tests.e2e.casting import TARGET

if TYPE_CHECKING:
    from tests.e2e.place import Place

pytestmark = [
    pytest.mark.realnode,
    pytest.mark.timeout(600),
    pytest.mark.skipif(os.geteuid() != 0, reason="real pods need a real node, which needs root"),
]

EXAMPLES = ["baseline-engine", "baseline-llm-api", "draft-target", "eagle3"]
# Longer than it takes the liveness probe to give a server up.
LIVENESS_SECONDS = 100
PROMPTS = ["What is speculative decoding?", "The capital of France is"]
RANK = re.compile(
    r"\[simulator\] (\w+): rank=(\d+) world_size=(\d+) role=(\w+) participants=([\d,]+) fast_logits=(\w+)"
)


def answer_of_the_target_alone(prompt: str) -> str:
    directory = Path(testbed.hub.__file__).parent / "models" / TARGET
    model, tokenizer = LlamaModel.load(directory), TextTokenizer.load(directory)
    generated = generate(model, tokenizer.encode(prompt), max_tokens=64, end_id=tokenizer.end_id)
    return tokenizer.decode(list(generated.tokens)).strip()


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_answers_through_its_service_as_the_target_alone_does(place: Place, name: str) -> None:
    place.until_ready(name)
    for prompt in PROMPTS:
        assert place.answer(name, prompt) == answer_of_the_target_alone(prompt)


@pytest.mark.parametrize("name", EXAMPLES)
def test_status_and_log_of_an_example_say_that_a_simulator_serves(place: Place, name: str) -> None:
    model = place.until_ready(name)
    assert "simulator" in condition(model, "Accepted")["message"]
    assert "[simulator]" in place.log(name)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_server_names_the_revision_that_status_names(place: Place, name: str) -> None:
    model = place.until_ready(name)
    assert place.served_revision(name) == model["status"]["currentRevision"]


@pytest.mark.parametrize(("name", "endpoint"), [("eagle3", "tensorrt_llm"), ("draft-target", "tensorrt_llm_bls")])
def test_a_draft_is_really_accepted_by_its_target(place: Place, name: str, endpoint: str) -> None:
    place.until_ready(name)
    before = len(logged_counts(place.log(name), model=endpoint))
    place.answer(name, PROMPTS[0])
    drafted, accepted = logged_counts(place.log(name), model=endpoint)[before]
    assert 0 < accepted < drafted


def test_mpirun_gives_each_model_the_ranks_that_status_tells(place: Place) -> None:
    model = place.until_ready("draft-target")
    placed: dict[str, Any] = model["status"]["placement"]
    participants = {}
    for name, rank, size, role, ids, fast in RANK.findall(place.log("draft-target")):
        assert int(size) == placed["worldSize"]
        if rank in ids.split(","):
            assert (role, fast) == ("participant", "on")
            participants["draft" if "draft" in name else "target"] = [int(number) for number in ids.split(",")]
    assert participants == {m["role"]: m["participantIds"] for m in placed["models"]}


def test_models_that_need_the_same_engine_share_one_build(place: Place) -> None:
    place.until_ready("baseline-engine")
    place.until_condition("twin", "EnginesReady", "True")
    engine = place.artifact("twin", "target-engine")["name"]
    assert engine == place.artifact("baseline-engine", "target-engine")["name"]
    assert len(place.jobs(engine)) == 1


@pytest.mark.parametrize("name", EXAMPLES)
def test_serving_pods_run_as_an_ordinary_user_without_any_capability(place: Place, name: str) -> None:
    place.until_ready(name)
    pod = place.serving_pod(name)["metadata"]["name"]
    status = place.kubectl("exec", pod, "--container=server", "--", "cat", "/proc/1/status")
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert fields["Uid"].split() == ["1000"] * 4
    assert int(fields["CapBnd"], 16) == 0
    assert fields["NoNewPrivs"] == "1"
    assert fields["Seccomp"] == "2"


def test_idle_servers_are_left_running(place: Place) -> None:
    ready = {name: ready_since(place.until_ready(name)) for name in EXAMPLES}
    idle = (datetime.now(UTC) - max(ready.values())).total_seconds()
    time.sleep(max(0, LIVENESS_SECONDS - idle))
    for name in EXAMPLES:
        (status,) = place.serving_pod(name)["status"]["containerStatuses"]
        assert datetime.fromisoformat(status["state"]["running"]["startedAt"]) <= ready[name], status


def ready_since(model: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(condition(model, "Ready")["lastTransitionTime"])

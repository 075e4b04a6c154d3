"""What no row in a real pod shows of vLLM and the LLM API: assembled by the image itself, served by a real Triton."""

from __future__ import annotations

import asyncio
import os
import shutil
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from specdec_operator.api.v1alpha1.model_facts import ModelFacts
from specdec_operator.pod.model_facts import read_facts
from specdec_operator.pod.sources import mount_items, program_files
from specdec_operator.triton.proof import Endpoint, Outcome, ProofRequest, TritonProver
from specdec_operator.triton.tensors import Tensor
from testbed.runtime.simulator.release import TRITON_RELEASE
from tests.e2e.simulator_root import MODELS, free_ports
from tests.unit.specs import model, plan_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from specdec_operator.planning.plan import ServingPlan
    from specdec_operator.triton.proof import Proof
    from tests.e2e.simulator_root import RunningServer, SimulatorRoot

pytestmark = [
    pytest.mark.realnode,
    pytest.mark.timeout(900),
    pytest.mark.skipif(os.geteuid() != 0, reason="unpacking and entering a root file system needs root"),
]

REVISION = "pair-1"
ANSWER = "Paris"
PORTS = (
    ("--http-port", "--kserve-http-port"),
    ("--grpc-port", "--kserve-grpc-port"),
    ("--metrics-port", "--openai-port"),
)
DRAFTS = {"Eagle3": "tiny-llama-eagle3"}
TARGETS = {"MTP": "tiny-llama-mtp"}


@pytest.fixture(scope="module")
def llm_api(tensorrt_llm_root: SimulatorRoot) -> SimulatorRoot:
    return _with_programs(tensorrt_llm_root)


@pytest.fixture(scope="module")
def vllm(vllm_root: SimulatorRoot) -> SimulatorRoot:
    return _with_programs(vllm_root)


def test_the_llm_api_streams_where_it_is_asked_to(llm_api: SimulatorRoot) -> None:
    plan = _plan("LLMAPI", "Eagle3", streaming=True)
    with _serving(llm_api, plan, "Eagle3") as server:
        _expect_answer(_proof(server, plan), server)
        request = {**plan.files.generate_request, "streaming": True}

        assert len(server.stream(plan.files.endpoint_model, **request)) > 1


def test_vllm_serves_a_target_that_drafts_by_a_layer_of_its_own(vllm: SimulatorRoot) -> None:
    plan = _plan("VLLM", "MTP")
    with _serving(vllm, plan, "MTP") as server:
        _expect_answer(_proof(server, plan), server)


def test_a_model_that_answers_in_pieces_is_not_asked_by_infer(vllm: SimulatorRoot) -> None:
    plan = _plan("VLLM", "None")
    with _serving(vllm, plan, "None") as server:
        proof = _proof(server, replace(plan, files=replace(plan.files, decoupled=False)))

        assert (proof.outcome, "decoupled" in proof.message) == (Outcome.WRONG_ANSWER, True)


def test_openai_s_protocol_is_served_beside_triton_s(vllm: SimulatorRoot) -> None:
    plan = _plan("VLLM", "NGram", openAIFrontEnd={"defaultMaxTokens": 12})
    with _serving(vllm, plan, "NGram") as server:
        _expect_answer(_proof(server, plan), server)
        asked = {"model": plan.files.endpoint_model, "prompt": plan.files.tensors[0].values[0], "temperature": 0}
        server.wait_until(f"http://127.0.0.1:{server.ports[2]}/health/ready")
        answer = server.post(f"http://127.0.0.1:{server.ports[2]}/v1/completions", asked)

        assert ANSWER in answer["choices"][0]["text"]
        assert server.metrics("nv_inference_request_success") >= 2


def _with_programs(root: SimulatorRoot) -> SimulatorRoot:
    texts = program_files("assemble")
    for item in mount_items(texts):
        path = root.root / "specdec" / "program" / item.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(texts[item.key])
    return root


def _plan(backend: str, method: str, **serving: Any) -> ServingPlan:
    spec: dict[str, Any] = {
        "target": {"source": {"huggingFace": {"repository": "specdec-testbed/target"}}},
        "speculation": {"method": method},
        "runtime": {"backend": backend, "release": TRITON_RELEASE},
        "serving": serving,
        "storage": {"claim": {"size": "1Gi"}},
    }
    facts = {"target": _facts(TARGETS.get(method, "tiny-llama"))}
    if method in DRAFTS:
        spec["draft"] = {"source": {"huggingFace": {"repository": "specdec-testbed/draft"}}}
        facts["draft"] = _facts(DRAFTS[method])
    return plan_of(model(spec), facts)


def _facts(name: str) -> ModelFacts:
    return ModelFacts.model_validate(read_facts(MODELS / name).to_wire())


@contextmanager
def _serving(root: SimulatorRoot, plan: ServingPlan, method: str) -> Iterator[RunningServer]:
    for role, name in (("target", TARGETS.get(method, "tiny-llama")), ("draft", DRAFTS.get(method, ""))):
        link = root.root / "models" / role
        link.unlink(missing_ok=True)
        if name:
            link.symlink_to(name)
    shutil.rmtree(root.root / "repository", ignore_errors=True)
    (root.root / "assemble.json").write_text(replace(plan.assembled, revision=REVISION).to_json())
    root.run("python3", "/specdec/program", "assemble", "/assemble.json")
    ports = free_ports()
    argv = [_own_port(argument, ports) for argument in plan.files.argv]
    with root.running(f"{method}-server", ports, argv, environment=dict(plan.files.environment)) as server:
        server.wait_until_ready(plan.files.endpoint_model)
        yield server


def _own_port(argument: str, ports: tuple[int, int, int]) -> str:
    """The same argument with a port that is free on this machine; the front end shows the metrics on its own."""
    option = argument.partition("=")[0]
    index = next((index for index, options in enumerate(PORTS) if option in options), None)
    return argument if index is None else f"{option}={ports[index]}"


def _proof(server: RunningServer, plan: ServingPlan) -> Proof:
    files = plan.files
    request = ProofRequest(
        model=files.endpoint_model,
        tensors=tuple(Tensor(name=t.name, datatype=t.datatype, shape=t.shape, values=t.values) for t in files.tensors),
        output=files.output,
        revision=REVISION,
        decoupled=files.decoupled,
    )
    return asyncio.run(TritonProver().prove(Endpoint("127.0.0.1", server.ports[0]), request))


def _expect_answer(proof: Proof, server: RunningServer) -> None:
    assert proof.outcome is Outcome.SERVED, f"{proof.message}\n{server.log[-3000:]}"
    assert ANSWER in proof.text

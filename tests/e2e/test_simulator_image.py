from __future__ import annotations

import os
import re
import shutil
import signal
from typing import TYPE_CHECKING

import pytest
import yaml

from specdec_operator.pod.driver import DriverFloor
from specdec_operator.pod.inputs import CheckInput
from specdec_operator.pod.termination import Failed
from tests.e2e.simulator_root import free_ports
from tests.unit.pod.shipped import ShippedProgram

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.simulator_root import RunningServer, SimulatorRoot

pytestmark = [
    pytest.mark.realnode,
    pytest.mark.timeout(900),
    pytest.mark.skipif(os.geteuid() != 0, reason="unpacking and entering a root file system needs root"),
]

PROMPT = "The capital of France is"
ANSWER = " Paris, a city on the river Seine."
COMMON = {
    "triton_max_batch_size": "4",
    "triton_backend": "tensorrtllm",
    "decoupled_mode": "false",
    "logits_datatype": "TYPE_FP32",
    "prompt_embedding_table_data_type": "TYPE_FP16",
    "encoder_input_features_data_type": "TYPE_FP16",
    "batching_strategy": "inflight_fused_batching",
    "max_queue_delay_microseconds": "0",
    "max_queue_size": "0",
    "tokenizer_dir": "/models/tiny-llama",
    "preprocessing_instance_count": "1",
    "postprocessing_instance_count": "1",
    "bls_instance_count": "1",
    "tensorrt_llm_model_name": "tensorrt_llm",
    "tensorrt_llm_draft_model_name": "tensorrt_llm_draft",
    "speculative_decoding_fast_logits": "true",
}
DRAFTED = {"num_draft_tokens": 4, "use_draft_logits": True, "stream": False, "return_perf_metrics": True}


@pytest.fixture(scope="module")
def root(tensorrt_llm_root: SimulatorRoot) -> SimulatorRoot:
    return tensorrt_llm_root


def test_a_start_compiles_nothing(root: SimulatorRoot) -> None:
    imported = "numpy, yaml, tokenizers, huggingface_hub.hf_api, testbed.runtime.simulator.session"
    files = "[module.__cached__ for module in sys.modules.values() if getattr(module, '__cached__', None)]"
    missing = f"[file for file in {files} if not os.path.exists(file)]"
    assert root.run("python3", "-c", f"import os, sys, {imported}; print({missing})").strip() == "[]"


def test_a_module_of_a_layer_above_counts_and_not_the_bytecode_below(root: SimulatorRoot) -> None:
    package = root.root / "above" / "tensorrt_llm"
    shutil.copytree(root.root / "usr/local/lib/python3.11/dist-packages/tensorrt_llm", package)
    (package / "version.py").write_text((package / "version.py").read_text().replace("1.1.0", "9.9.9"))
    os.utime(package / "version.py", (0, 0))
    show = "import os, tensorrt_llm.version as module; print(os.path.exists(module.__cached__), module.__version__)"
    assert root.run("env", "PYTHONPATH=/above", "python3", "-c", show).split() == ["True", "9.9.9"]


@pytest.mark.parametrize(("driver", "ends"), [("535.183.06", "Succeeded"), ("535.54.03", "DriverTooOld")])
def test_the_check_of_a_pod_holds_the_driver_against_what_the_image_needs(
    root: SimulatorRoot, driver: str, ends: str
) -> None:
    program = ShippedProgram.lay_out("check", root.root / f"check-{driver}")
    floor = DriverFloor(minimum="580", data_center=("535.86",), source="a test")
    (program.directory / "input.json").write_text(CheckInput(gpus=1, driver=floor).to_json())
    inside = f"/{program.directory.name}"
    variables = (f"SIMULATOR_DRIVER={driver}", f"SPECDEC_TERMINATION_LOG={inside}/termination-log")
    run = f"python3 {inside}/program check {inside}/input.json || true"
    root.run("env", *variables, "sh", "-c", run)
    outcome = program.outcome()
    assert (outcome.reason if isinstance(outcome, Failed) else type(outcome).__name__) == ends


def llm_repository(
    root: SimulatorRoot,
    name: str,
    speculation: dict[str, object] | None,
    *,
    decoupled: bool = False,
    target: str = "tiny-llama",
) -> str:
    model = root.place(name, "tensorrt_llm", {"llmapi": "yes"})
    arguments: dict[str, object] = {
        "model": f"/models/{target}",
        "backend": "pytorch",
        "triton_config": {"max_batch_size": 0, "decoupled": decoupled},
    }
    if speculation:
        arguments["speculative_config"] = speculation
    (model / "1" / "model.yaml").write_text(yaml.safe_dump(arguments))
    return name


def ask_llm(server: RunningServer) -> dict[str, object]:
    return server.ask(
        "tensorrt_llm", text_input=PROMPT, sampling_param_max_tokens=16, sampling_param_return_perf_metrics=True
    )


@pytest.fixture(scope="module")
def eagle(root: SimulatorRoot) -> Iterator[RunningServer]:
    head = {"decoding_type": "Eagle", "speculative_model_dir": "/models/tiny-llama-eagle3", "max_draft_len": 3}
    with root.serving(llm_repository(root, "eagle", head)) as server:
        server.wait_until_ready("tensorrt_llm")
        yield server


def test_the_llm_api_model_answers_with_a_head(eagle: RunningServer) -> None:
    assert ask_llm(eagle)["text_output"] == ANSWER


def test_the_llm_api_model_answers_the_same_without_a_draft(root: SimulatorRoot) -> None:
    with root.serving(llm_repository(root, "plain", None)) as server:
        server.wait_until_ready("tensorrt_llm")
        assert ask_llm(server)["text_output"] == ANSWER


def test_the_llm_api_model_reports_zero_acceptance_and_logs_the_truth(eagle: RunningServer) -> None:
    answer = ask_llm(eagle)
    assert (answer["total_draft_tokens"], answer["acceptance_rate"]) == ("0", "0.0")
    counts = re.findall(r"\[simulator\] tensorrt_llm: drafted=(\d+) accepted=(\d+)", eagle.log)
    assert int(counts[-1][0]) > int(counts[-1][1]) > 0


def test_the_llm_api_model_reports_acceptance_where_the_switch_says_so(root: SimulatorRoot) -> None:
    draft = {"decoding_type": "DraftTarget", "speculative_model_dir": "/models/tiny-llama-draft", "max_draft_len": 3}
    repository = llm_repository(root, "reporting", draft)
    with root.serving(repository, environment={"SIMULATOR_REPORT_ACCEPTANCE": "1"}) as server:
        server.wait_until_ready("tensorrt_llm")
        assert int(str(ask_llm(server)["total_accepted_draft_tokens"])) > 0


@pytest.mark.parametrize(
    ("method", "version", "target", "fields"),
    [
        ("NGram", "1.1.0", "tiny-llama", {"max_draft_len": 3, "max_matching_ngram_size": 2}),
        ("MTP", "1.2.1", "tiny-llama-mtp", {"num_nextn_predict_layers": 2}),
    ],
)
def test_each_method_of_the_llm_api_without_a_draft_drafts(
    root: SimulatorRoot, method: str, version: str, target: str, fields: dict[str, object]
) -> None:
    repository = llm_repository(root, f"llm-{method}", {"decoding_type": method, **fields}, target=target)
    environment = {"SIMULATOR_REPORT_ACCEPTANCE": "1", "SIMULATOR_TENSORRT_LLM_VERSION": version}
    with root.serving(repository, environment=environment) as server:
        server.wait_until_ready("tensorrt_llm")
        # The second time, a pool of n-grams knows the answer.
        answers = [ask_llm(server) for _ in range(2)]
    assert {answer["text_output"] for answer in answers} == {ANSWER}
    assert int(str(answers[1]["total_accepted_draft_tokens"])) > 0


def test_the_llm_api_model_takes_the_spelling_of_the_played_release(root: SimulatorRoot) -> None:
    draft: dict[str, object] = {
        "decoding_type": "Draft_Target",
        "speculative_model": "/models/tiny-llama-draft",
        "max_draft_len": 3,
    }
    repository = llm_repository(root, "newer-spelling", draft)
    with root.serving(repository, environment={"SIMULATOR_TENSORRT_LLM_VERSION": "1.2.1"}) as server:
        server.wait_until_ready("tensorrt_llm")
        assert ask_llm(server)["text_output"] == ANSWER


def test_the_llm_api_model_fails_to_load_without_a_gpu(root: SimulatorRoot) -> None:
    repository = llm_repository(root, "without-gpu", None)
    with root.serving(repository, environment={"NVIDIA_VISIBLE_DEVICES": "void"}) as server:
        assert server.process.wait(timeout=60) != 0
        assert "no CUDA-capable device is detected" in server.log


def test_the_llm_api_model_streams_what_it_answers_where_model_yaml_says_decoupled(root: SimulatorRoot) -> None:
    repository = llm_repository(root, "streaming", None, decoupled=True)
    with root.serving(repository, auto_complete=True) as server:
        server.wait_until_ready("tensorrt_llm")
        pieces = server.stream("tensorrt_llm", text_input=PROMPT, sampling_param_max_tokens=16, streaming=True)
    assert len(pieces) > 2
    assert "".join(str(piece["text_output"]) for piece in pieces) == ANSWER


@pytest.fixture(scope="module")
def pair(root: SimulatorRoot) -> str:
    """A repository of the fast-logits layout: draft on rank 1, target on rank 2."""
    mode = ("--speculative_decoding_mode", "draft_tokens_external", "--max_draft_len", "5")
    target = {"engine_dir": root.build_engine("tiny-llama", *mode), "participant_ids": "2", "gpu_device_ids": "1"}
    draft = {"engine_dir": root.build_engine("tiny-llama-draft"), "participant_ids": "1", "gpu_device_ids": "0"}
    for template in ("preprocessing", "postprocessing", "tensorrt_llm_bls"):
        root.place("pair", template, COMMON)
    root.place("pair", "tensorrt_llm", COMMON | target)
    root.place("pair", "tensorrt_llm", COMMON | draft, name="tensorrt_llm_draft")
    return "pair"


@pytest.fixture(scope="module")
def ranks(root: SimulatorRoot, pair: str) -> Iterator[RunningServer]:
    with root.serving(pair, ranks=3) as server:
        server.wait_until_ready("tensorrt_llm_bls")
        yield server


def test_three_ranks_answer_with_fast_logits(ranks: RunningServer) -> None:
    answer = ranks.ask("tensorrt_llm_bls", text_input=PROMPT, max_tokens=16, **DRAFTED)
    assert answer["text_output"] == PROMPT + ANSWER


def test_each_rank_takes_its_part_from_the_participant_ids(ranks: RunningServer) -> None:
    parts = set(re.findall(r"\[simulator\] (\w+): rank=(\d) world_size=3 role=(\w+)", ranks.log))
    assert {
        ("tensorrt_llm_draft", "0", "orchestrator"),
        ("tensorrt_llm_draft", "1", "participant"),
        ("tensorrt_llm", "2", "participant"),
    } <= parts


def test_without_draft_tokens_the_target_answers_alone_and_the_same(ranks: RunningServer) -> None:
    answer = ranks.ask("tensorrt_llm_bls", text_input=PROMPT, max_tokens=16, return_perf_metrics=True)
    assert (answer["text_output"], answer["total_draft_tokens"]) == (PROMPT + ANSWER, 0)


def test_the_draft_saves_calls_of_the_target(ranks: RunningServer) -> None:
    ranks.ask("tensorrt_llm_bls", text_input=PROMPT, max_tokens=16, **DRAFTED)
    counts = re.findall(r"tensorrt_llm_bls: target_calls=(\d+) drafted=\d+ accepted=(\d+)", ranks.log)
    assert int(counts[-1][1]) > 0


def test_stream_must_be_sent_with_draft_tokens(ranks: RunningServer) -> None:
    answer = ranks.ask("tensorrt_llm_bls", text_input=PROMPT, max_tokens=16, num_draft_tokens=4)
    assert "'NoneType' object has no attribute 'any'" in answer["error"]


def test_more_draft_tokens_than_the_engine_takes_are_an_error(ranks: RunningServer) -> None:
    answer = ranks.ask("tensorrt_llm_bls", text_input=PROMPT, max_tokens=64, **DRAFTED | {"num_draft_tokens": 56})
    assert "Number of draft tokens (56) is larger than maximum" in answer["error"]


def test_participants_leave_with_exit_code_0_after_the_orchestrator(root: SimulatorRoot, pair: str) -> None:
    with root.serving(pair, ranks=3) as server:
        server.wait_until_ready("tensorrt_llm_bls")
        os.kill(server.rank_process(0), signal.SIGTERM)
        assert server.process.wait(timeout=60) == 0


def test_a_rank_too_many_takes_a_port_and_so_ends_the_job(root: SimulatorRoot, pair: str) -> None:
    with root.serving(pair, ranks=4) as server:
        assert server.process.wait(timeout=60) != 0
        assert "already in use" in server.log


def test_fast_logits_with_spawning_are_silently_off(root: SimulatorRoot, pair: str) -> None:
    with root.serving(pair, ranks=1, environment={"TRTLLM_ORCHESTRATOR_SPAWN_PROCESSES": "1"}) as server:
        server.wait_until_ready("tensorrt_llm_bls")
        answer = server.ask("tensorrt_llm_bls", text_input=PROMPT, max_tokens=16, **DRAFTED)
        assert answer["text_output"] == PROMPT + ANSWER
        assert "needs orchestrator mode without spawning processes: disabled" in server.log


def test_one_engine_answers_through_the_ensemble(root: SimulatorRoot, pair: str) -> None:
    assert pair
    for template in ("preprocessing", "postprocessing", "ensemble", "tensorrt_llm"):
        root.place("single", template, COMMON | {"engine_dir": "/engines/tiny-llama"})
    with root.serving("single") as server:
        server.wait_until_ready("ensemble")
        answer = server.ask("ensemble", text_input=PROMPT, max_tokens=16, end_id=2, pad_id=2)
        assert answer["text_output"] == PROMPT + ANSWER


def test_one_engine_answers_through_the_openai_front_end(root: SimulatorRoot, pair: str) -> None:
    assert pair
    for template in ("preprocessing", "postprocessing", "ensemble", "tensorrt_llm"):
        root.place("fronted", template, COMMON | {"engine_dir": "/engines/tiny-llama"})
    ports = free_ports()
    command = ["python3", "/opt/tritonserver/python/openai/openai_frontend/main.py", "--backend=tensorrtllm"]
    command += ["--model-repository=/fronted", "--tokenizer=/models/tiny-llama", f"--openai-port={ports[2]}"]
    with root.running("fronted", ports, command, environment={"TRTLLM_ORCHESTRATOR": "1"}) as server:
        front = f"http://127.0.0.1:{ports[2]}"
        server.wait_until(f"{front}/health/ready")
        answer = server.post(f"{front}/v1/completions", {"model": "ensemble", "prompt": PROMPT, "max_tokens": 16})
    assert answer["choices"][0]["text"] == PROMPT + ANSWER

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from specdec_operator.planning.serving_request import serving_request
from specdec_operator.runtimes.tensorrt_engine import render
from testbed.runtime.simulator.launch_triton_server import launch_command, launch_environment
from tests.unit.specs import BASELINE_ENGINE, DRAFT_TARGET, facts, model, plan_of, resolution_of

if TYPE_CHECKING:
    from specdec_operator.pod.inputs import ModelTemplate
    from specdec_operator.runtimes.serving import ServingFiles

TWO_GPUS = {"target__parallelism": {"tensor": 2}}


def files_of(spec: dict[str, Any] = DRAFT_TARGET, **changes: Any) -> ServingFiles:
    return plan_of(model(spec, **changes)).files


def template(files: ServingFiles, name: str) -> ModelTemplate:
    (found,) = (template for template in files.templates if template.name == name)
    return found


def values(name: str, spec: dict[str, Any] = DRAFT_TARGET, **changes: Any) -> dict[str, str]:
    return dict(template(files_of(spec, **changes), name).values)


@pytest.mark.parametrize(
    ("spec", "changes", "arguments"),
    [
        (BASELINE_ENGINE, {}, ["--no-mpi"]),
        (BASELINE_ENGINE, TWO_GPUS, ["--world_size=2"]),
        (
            DRAFT_TARGET,
            {},
            [
                "--world_size=6",
                "--multi-model",
                "--disable-spawn-processes",
                "--tensorrt_llm_model_name=tensorrt_llm,tensorrt_llm_draft",
            ],
        ),
    ],
)
def test_the_command_is_the_one_that_nvidia_s_launch_script_makes(
    spec: dict[str, Any], changes: dict[str, Any], arguments: list[str]
) -> None:
    theirs = launch_command(["--model_repo=/repository", "--exit_timeout=30", *arguments], {})

    assert list(files_of(spec, **changes).argv) == theirs[: -1 if theirs[-1] == ":" else None]


def test_a_pair_s_ranks_are_directed_as_by_the_launch_script() -> None:
    theirs = launch_environment(["--multi-model", "--disable-spawn-processes"])

    assert theirs.items() <= dict(files_of().environment).items()


def test_one_engine_needs_no_orchestrator() -> None:
    assert "TRTLLM_ORCHESTRATOR" not in files_of(BASELINE_ENGINE, **TWO_GPUS).environment


def test_one_process_needs_no_environment() -> None:
    assert files_of(BASELINE_ENGINE).environment == {}


def test_one_engine_is_answered_for_by_the_ensemble() -> None:
    files = files_of(BASELINE_ENGINE)

    assert (files.endpoint_model, "tensorrt_llm_bls" in {t.name for t in files.templates}) == ("ensemble", False)


def test_a_pair_has_no_ensemble_which_would_call_the_target_alone() -> None:
    files = files_of()

    assert (files.endpoint_model, "ensemble" in {t.name for t in files.templates}) == ("tensorrt_llm_bls", False)


def test_participants_and_devices_are_derived() -> None:
    target, draft = values("tensorrt_llm"), values("tensorrt_llm_draft")

    assert (draft["participant_ids"], draft["gpu_device_ids"]) == ("1", "0")
    assert (target["participant_ids"], target["gpu_device_ids"]) == ("2,3,4,5", "1,2,3,4")


def test_logits_are_sent_fast_by_both() -> None:
    assert {values(name)["speculative_decoding_fast_logits"] for name in ("tensorrt_llm", "tensorrt_llm_draft")} == {
        "true"
    }


def test_a_leader_s_ranks_have_devices_and_no_participants() -> None:
    found = values("tensorrt_llm", BASELINE_ENGINE, **TWO_GPUS)

    assert (found["gpu_device_ids"], "participant_ids" in found) == ("0,1", False)


def test_logits_have_one_type_in_the_whole_repository() -> None:
    files = files_of(engine__logitsDataType="float16")

    assert {t.values["logits_datatype"] for t in files.templates if "logits_datatype" in t.values} == {"TYPE_FP16"}


def test_each_model_has_its_own_engine() -> None:
    assert (values("tensorrt_llm")["engine_dir"], values("tensorrt_llm_draft")["engine_dir"]) == (
        "/engines/target",
        "/engines/draft",
    )


def test_bls_needs_the_prompt_in_the_engines_answers() -> None:
    assert values("tensorrt_llm_draft")["exclude_input_in_output"] == "false"


def test_one_engine_answers_without_the_prompt() -> None:
    assert values("tensorrt_llm", BASELINE_ENGINE)["exclude_input_in_output"] == "true"


def test_bls_answers_as_many_requests_at_once_as_are_served() -> None:
    assert values("tensorrt_llm_bls", serving={"maxBatchSize": 3})["bls_instance_count"] == "3"


def test_serving_options_reach_the_engines() -> None:
    serving = {
        "maxBatchSize": 3,
        "maxQueueDelayMicroseconds": 100,
        "kvCache": {"freeGPUMemoryPercent": 5, "reuse": True},
    }
    found = values("tensorrt_llm", serving=serving)

    assert found["triton_max_batch_size"] == "3"
    assert found["max_queue_delay_microseconds"] == "100"
    assert found["kv_cache_free_gpu_mem_fraction"] == "0.05"
    assert found["enable_kv_cache_reuse"] == "true"


def test_clients_are_told_what_a_drafted_request_needs() -> None:
    assert files_of().request_parameters == {"num_draft_tokens": "10", "use_draft_logits": "true", "stream": "false"}


def test_the_proof_sends_what_clients_are_told_to() -> None:
    request = files_of().generate_request

    assert {name: request[name] for name in files_of().request_parameters} == {
        "num_draft_tokens": 10,
        "use_draft_logits": True,
        "stream": False,
    }


def test_the_request_has_a_batch_dimension() -> None:
    assert {tensor.shape for tensor in files_of().tensors} == {(1, 1)}


def test_a_model_without_an_end_token_is_asked_without_one() -> None:
    made = model(BASELINE_ENGINE)
    request = plan_of(made, {"target": facts(eos_token_ids=[])}).files.generate_request

    assert "end_id" not in request


@pytest.mark.parametrize(("spec", "changes"), [(DRAFT_TARGET, {}), (BASELINE_ENGINE, {}), (BASELINE_ENGINE, TWO_GPUS)])
def test_no_variable_has_a_value_and_is_unset(spec: dict[str, Any], changes: dict[str, Any]) -> None:
    for found in files_of(spec, **changes).templates:
        assert not (set(found.values) | set(found.optional_values)) & set(found.unset)


def test_streamed_answers_are_proven_one_by_one() -> None:
    files = files_of(BASELINE_ENGINE, serving__streaming=True)

    assert (files.decoupled, files.generate_request["stream"], files.request_parameters) == (True, False, {})


def test_whole_answers_need_no_word_about_streaming() -> None:
    files = files_of(BASELINE_ENGINE)

    assert (files.decoupled, "stream" in files.generate_request) == (False, False)


@pytest.mark.parametrize(("devices", "value"), [(([0], [1, 2, 3, 4]), "Fast"), (([0], [0, 1, 2, 3]), "Disabled")])
def test_status_tells_how_logits_travel_where_nobody_declared_it(devices: Any, value: str) -> None:
    files = files_of(placement__draftDevices=devices[0], placement__targetDevices=devices[1])

    assert (files.derived[0].name, files.derived[0].value) == ("speculation.draftTarget.logitsTransfer", value)


def test_what_is_declared_is_not_told_as_derived() -> None:
    assert files_of(speculation__draftTarget={"logitsTransfer": "Standard"}).derived == ()


def test_the_tokens_of_a_shared_gpu_are_told() -> None:
    made = model(DRAFT_TARGET, target__parallelism={}, placement__draftDevices=[0], placement__targetDevices=[0])
    asked = serving_request(made.spec, resolution_of(made), {"target": facts(), "draft": facts()})
    files = render(replace(asked, kv_tokens={"target": 4096, "draft": 8192}))

    assert [(found.name, found.value) for found in files.derived[1:]] == [
        ("serving.draftKvCache.maxTokens", "8192"),
        ("serving.kvCache.maxTokens", "4096"),
    ]


def test_a_release_without_engines_serves_none() -> None:
    made = model(BASELINE_ENGINE)
    asked = serving_request(made.spec, resolution_of(made), {"target": facts()})

    with pytest.raises(ValueError, match="has no engine backend"):
        render(replace(asked, release=asked.release.model_copy(update={"tensorrt_engine": None})))

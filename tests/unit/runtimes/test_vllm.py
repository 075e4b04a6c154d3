"""The vLLM backend's files, judged by the key lists of each vLLM version."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from specdec_operator.pod.assemble import assemble
from specdec_operator.pod.inputs import AssembleInput
from specdec_operator.pod.model_config import get_field, parameters
from specdec_operator.pod.textproto import EnumValue, parse
from testbed.runtime.simulator.vllm_arguments import parse_arguments
from tests.unit.specs import TABLE, facts, head, model, plan_of

if TYPE_CHECKING:
    from pathlib import Path

    from specdec_operator.planning.plan import ServingPlan

Json = dict[str, Any]
DRAFTS = {"Eagle": "eagle", "Eagle3": "eagle3", "Medusa": "medusa", "DraftTarget": "draft_model"}
SERVED = [
    (release.name, method)
    for release in TABLE.releases
    for method in release.methods("VLLM")
    if release.vllm is not None
]


def spec(method: str, release: str) -> Json:
    drafts = {"draft": {"source": {"huggingFace": {"repository": "someone/draft"}}}} if method in DRAFTS else {}
    return {
        "target": {"source": {"huggingFace": {"repository": "someone/target"}}},
        "speculation": {"method": method},
        "runtime": {"backend": "VLLM", "release": release},
        "storage": {"claim": {"size": "100Gi"}},
        **drafts,
    }


def planned(
    method: str = "Eagle3", release: str = "26.02", *, draft_context: int = 131072, **changes: Any
) -> ServingPlan:
    made = model(spec(method, release), **changes)
    known = {"target": facts()}
    if method in DRAFTS:
        known["draft"] = head(context_length=draft_context)
    return plan_of(made, known)


def arguments(plan: ServingPlan) -> Json:
    (template,) = plan.files.templates
    document: Json = json.loads(template.files["1/model.json"])
    return document


def vllm(method: str = "Eagle3", release: str = "26.02", **changes: Any) -> Json:
    return arguments(planned(method, release, **changes))


@pytest.mark.parametrize(("release", "method"), SERVED)
def test_every_release_knows_all_that_it_is_told(release: str, method: str) -> None:
    serving = {
        "maxSequenceLength": 4096,
        "maxBatchedTokens": 8192,
        "chunkedContext": True,
        "kvCache": {"maxTokens": 64},
    }
    support = next(r.vllm for r in TABLE.releases if r.name == release)

    assert support is not None
    for changes in ({}, {"serving": serving}):
        read = parse_arguments(vllm(method, release, **changes), support.version)
        assert (read.speculation is None) == (method == "None")
        assert read.speculation is None or read.speculation.nested == (support.configuration == "Nested")


def test_seed_s_eagle_model_has_the_same_meaning() -> None:
    document = vllm("Eagle", "25.04", speculation__maxDraftTokens=5)

    assert {key: document[key] for key in document if "specul" in key} == {
        "speculative_model": "/models/eagle-draft",
        "num_speculative_tokens": 5,
        "speculative_draft_tensor_parallel_size": 1,
    }


def test_seed_s_opt_model_has_the_same_meaning() -> None:
    document = vllm("DraftTarget", "25.02", speculation__maxDraftTokens=5)

    assert document["tensor_parallel_size"] == 1
    assert (document["speculative_model"], document["num_speculative_tokens"]) == ("/models/draft", 5)


def test_flat_keys_know_a_head_by_its_path_which_is_where_it_is_mounted() -> None:
    plan = planned("Eagle", "25.03")

    assert [mount.directory for mount in plan.mounts] == ["/models/target", "/models/eagle-draft"]
    assert plan.check.model_directories == ("/models/target", "/models/eagle-draft")


@pytest.mark.parametrize(("method", "spelled"), DRAFTS.items())
def test_the_method_is_always_named_where_it_can_be(method: str, spelled: str) -> None:
    config = vllm(method, "26.02", speculation__maxDraftTokens=2)["speculative_config"]

    directory = "/models/eagle-draft" if method == "Eagle" else "/models/draft"
    assert (config["method"], config["model"], config["num_speculative_tokens"]) == (spelled, directory, 2)


@pytest.mark.parametrize(
    ("options", "release", "lookup"),
    [
        ({}, "26.02", (5, 5)),
        ({"maxMatchingLength": 3}, "26.02", (3, 3)),
        ({"minMatchingLength": 2}, "26.02", (2, 2)),
        ({"maxMatchingLength": 7, "minMatchingLength": 2}, "26.02", (7, 2)),
        ({"maxMatchingLength": 7}, "25.02", (7, 1)),
    ],
)
def test_n_grams_are_looked_up_by_vllm_s_own_rules(options: Json, release: str, lookup: tuple[int, int]) -> None:
    document = vllm("NGram", release, speculation__nGram=options)
    nested = document.get("speculative_config", {})

    assert lookup == (
        nested.get("prompt_lookup_max", document.get("ngram_prompt_lookup_max")),
        nested.get("prompt_lookup_min", document.get("ngram_prompt_lookup_min")),
    )
    assert nested.get("method", document.get("speculative_model")) in ("ngram", "[ngram]")


@pytest.mark.parametrize(
    ("release", "named"),
    [
        ("26.02", {"method": "mtp"}),
        ("25.10", {"method": "deepseek_mtp", "model": "/models/target"}),
        ("25.05", {"method": "deepseek_mtp", "model": "/models/target"}),
    ],
)
def test_mtp_names_the_target_until_vllm_finds_it_for_all(release: str, named: dict[str, str]) -> None:
    target = facts(architecture="DeepseekV3ForCausalLM", next_token_layers=1)
    plan = plan_of(model(spec("MTP", release)), {"target": target})

    assert arguments(plan)["speculative_config"] == {**named, "num_speculative_tokens": 1}


def test_flat_keys_name_the_target_as_its_own_draft() -> None:
    target = facts(architecture="DeepseekV3ForCausalLM", next_token_layers=1)
    document = arguments(plan_of(model(spec("MTP", "25.03")), {"target": target}))

    assert (document["speculative_model"], document["num_speculative_tokens"]) == ("/models/target", 1)


def test_a_draft_model_is_split_as_its_target_on_the_newer_engine() -> None:
    config = vllm("DraftTarget", "26.02", target__parallelism={"tensor": 4})["speculative_config"]

    assert "draft_tensor_parallel_size" not in config


@pytest.mark.parametrize(("declared", "said"), [(1, 1), (4, None)])
def test_a_draft_model_is_split_as_declared_on_the_first_engine(declared: int, said: int | None) -> None:
    changes = {"target__parallelism": {"tensor": 4}, "draft__parallelism": {"tensor": declared}}

    assert vllm("DraftTarget", "25.08", **changes)["speculative_config"].get("draft_tensor_parallel_size") == said


@pytest.mark.parametrize(("release", "split"), [("25.08", 1), ("25.10", None)])
def test_a_head_is_not_split_on_the_first_engine(release: str, split: int | None) -> None:
    config = vllm("Eagle", release, target__parallelism={"tensor": 2})["speculative_config"]

    assert config.get("draft_tensor_parallel_size") == split


@pytest.mark.parametrize(
    ("method", "release", "draft", "told"),
    [
        ("DraftTarget", "26.02", 1, ["vLLM 0.15.1 splits a draft as its target"]),
        ("DraftTarget", "26.02", 2, []),
        ("DraftTarget", "25.08", 1, []),
        ("DraftTarget", "25.04", 1, []),
        ("Eagle3", "26.02", 1, ["vLLM 0.15.1 splits a draft as its target"]),
        ("Eagle", "25.04", 2, ["vLLM 0.8.1 splits no head"]),
        ("Medusa", "26.08", 1, []),
    ],
)
def test_a_split_other_than_the_declared_one_is_told(method: str, release: str, draft: int, told: list[str]) -> None:
    split: Json = {"target__parallelism": {"tensor": 2}, "draft__parallelism": {"tensor": draft}}
    derived = planned(method, release, **split).files.derived

    assert [found.reason for found in derived if found.name == "draft.parallelism.tensor"] == told


@pytest.mark.parametrize(("release", "chunked"), [("25.04", {False}), ("25.08", {False}), ("25.10", set())])
def test_the_first_engine_takes_no_prompt_in_pieces_beside_an_eagle_head(release: str, chunked: set[bool]) -> None:
    document = vllm("Eagle", release)

    assert {value for key, value in document.items() if key == "enable_chunked_prefill"} == chunked


@pytest.mark.parametrize(
    ("method", "release", "told"),
    [
        ("Eagle", "25.08", ["false"]),
        ("NGram", "25.01", ["false"]),
        ("DraftTarget", "25.01", ["false"]),
        ("Medusa", "25.01", ["false"]),
        ("Medusa", "25.02", ["false"]),
        ("NGram", "25.02", []),
        ("DraftTarget", "25.02", []),
        ("Medusa", "25.03", []),
        ("None", "25.01", []),
    ],
)
def test_a_wish_that_the_first_engine_can_not_grant_is_told(method: str, release: str, told: list[str]) -> None:
    plan = planned(method, release, serving={"chunkedContext": True})

    assert [found.value for found in plan.files.derived if found.name == "serving.chunkedContext"] == told
    assert arguments(plan)["enable_chunked_prefill"] is not bool(told)


@pytest.mark.parametrize(
    ("method", "release", "wanted"),
    [("Eagle3", "25.09", "1"), ("Eagle3", "25.08", "1"), ("Eagle", "25.08", None), ("Eagle3", "25.10", None)],
)
def test_the_newer_engine_is_asked_for_where_the_row_says(method: str, release: str, wanted: str | None) -> None:
    assert planned(method, release).files.environment.get("VLLM_USE_V1") == wanted


@pytest.mark.parametrize(("release", "length"), [("26.02", 2048), ("26.07", 2048), ("26.08", None)])
def test_a_short_head_caps_the_served_length_before_0_27_1(release: str, length: int | None) -> None:
    assert vllm("Eagle3", release, draft_context=2048).get("max_model_len") == length


def test_a_capped_length_is_told() -> None:
    files = planned("Eagle3", "26.02", draft_context=2048, serving={"maxSequenceLength": 4096}).files

    assert [(found.name, found.value) for found in files.derived] == [("serving.maxSequenceLength", "2048")]


def test_a_length_that_the_head_reaches_is_kept() -> None:
    plan = planned("Eagle3", "26.02", draft_context=2048, serving={"maxSequenceLength": 1024})

    assert (arguments(plan)["max_model_len"], plan.files.derived) == (1024, ())


@pytest.mark.parametrize(
    ("method", "batch", "declared", "rendered"),
    [
        ("DraftTarget", 8, None, None),
        ("DraftTarget", 2048, None, 4097),
        ("DraftTarget", 8, 10, 17),
        ("DraftTarget", 8, 17, 17),
        ("Eagle3", 2048, None, 2049),
        ("Eagle3", 8, 4096, 4096),
    ],
)
def test_a_step_has_room_for_what_drafts_add(
    method: str, batch: int, declared: int | None, rendered: int | None
) -> None:
    serving: Json = {"maxBatchSize": batch} | ({} if declared is None else {"maxBatchedTokens": declared})
    plan = planned(method, "26.02", serving=serving)

    assert arguments(plan).get("max_num_batched_tokens") == rendered
    assert len(plan.files.derived) == (declared is not None and declared != rendered)


def test_a_prompt_that_is_not_taken_in_pieces_fits_a_step() -> None:
    serving = {"chunkedContext": False, "maxBatchedTokens": 512, "maxSequenceLength": 4096}

    assert vllm("None", "26.02", serving=serving)["max_num_batched_tokens"] == 4096


def test_serving_options_reach_vllm() -> None:
    serving = {
        "maxBatchSize": 3,
        "tokenizer": {"mode": "Slow"},
        "kvCache": {"freeGPUMemoryPercent": 55, "reuse": False, "maxTokens": 100},
    }
    document = vllm("None", "26.02", serving=serving, target__parallelism={"tensor": 2, "pipeline": 2})

    assert document == {
        "model": "/models/target",
        "tensor_parallel_size": 2,
        "pipeline_parallel_size": 2,
        "max_num_seqs": 3,
        "gpu_memory_utilization": 0.55,
        "enable_prefix_caching": False,
        "tokenizer_mode": "slow",
        "disable_log_stats": False,
        "block_size": 16,
        "num_gpu_blocks_override": 6,
    }


def test_weights_are_as_quantized_as_they_were_published() -> None:
    assert not {"quantization", "dtype"} & set(vllm("None", "26.02"))


def test_triton_gives_one_engine_all_devices(tmp_path: Path) -> None:
    plan = planned()
    assemble(
        AssembleInput(output=str(tmp_path), models=plan.files.templates, revision_model="vllm_model", revision="r")
    )
    config = parse((tmp_path / "vllm_model" / "config.pbtxt").read_text())

    assert get_field(config, "backend") == "vllm"
    assert [get_field(group, "kind") for group in config.values("instance_group")] == [EnumValue("KIND_MODEL")]
    assert [get_field(group, "count") for group in config.values("instance_group")] == [1]
    assert parameters(config) == {
        "REPORT_CUSTOM_METRICS": "true",
        "ENABLE_VLLM_HEALTH_CHECK": "true",
        "specdec_revision": "r",
    }


def test_old_backends_report_no_metrics_of_the_newer_engine() -> None:
    (template,) = planned("Eagle3", "25.09").files.templates

    assert "REPORT_CUSTOM_METRICS" not in template.parameters


def test_the_server_completes_the_model_s_configuration_itself() -> None:
    argv = planned().files.argv

    assert "--disable-auto-complete-config" not in argv
    assert argv[-3:] == (
        "--model-control-mode=explicit",
        "--load-model=vllm_model",
        "--backend-config=python,shm-region-prefix-name=prefix0_",
    )


def test_the_log_is_as_wordy_as_asked() -> None:
    assert "--log-verbose=3" in planned(serving={"logVerbosity": 3}).files.argv


def test_the_request_is_short_and_greedy_and_has_no_batch_dimension() -> None:
    files = planned().files

    assert files.generate_request == {
        "text_input": "The capital of France is",
        "stream": False,
        "sampling_parameters": '{"max_tokens": 8, "temperature": 0}',
        "exclude_input_in_output": True,
    }
    assert {tensor.shape for tensor in files.tensors} == {(1,)}


def test_clients_are_told_how_to_ask_for_more_than_a_line() -> None:
    parameters_of = planned().files.request_parameters

    assert json.loads(json.loads(parameters_of["sampling_parameters"])) == {"max_tokens": 256}


def test_the_model_is_asked_by_generate_which_takes_answers_in_pieces() -> None:
    assert planned().files.decoupled


def test_the_image_must_hold_the_release_s_vllm() -> None:
    assert (planned().check.vllm_version, planned().check.tensorrt_llm_version) == ("0.15.1", "")


def test_the_image_is_the_one_with_vllm() -> None:
    assert planned().resolution.image.reference == "nvcr.io/nvidia/tritonserver:26.02-vllm-python-py3"

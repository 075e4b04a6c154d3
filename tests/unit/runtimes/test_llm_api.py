from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from specdec_operator.api.yaml_text import read_yaml
from specdec_operator.planning.admission import admit
from specdec_operator.planning.plan import plan_serving
from specdec_operator.runtimes.table import load_table
from testbed.runtime.simulator.llm_arguments import KnownKeys, parse_arguments
from tests.unit.specs import BASELINE, CONFIGURATION, EAGLE3, TABLE, facts_of, model, models_of, plan_of

if TYPE_CHECKING:
    from specdec_operator.runtimes.serving import ServingFiles

SERVED = [(release.name, method) for release in TABLE.releases for method in release.methods("LLMAPI")]


def files_of(spec: dict[str, Any] = EAGLE3, **changes: Any) -> ServingFiles:
    return plan_of(model(spec, **changes)).files


def yaml_of(files: ServingFiles) -> dict[str, Any]:
    (template,) = files.templates
    document: dict[str, Any] = read_yaml(template.files["1/model.yaml"])
    return document


def files_by_row(support: dict[str, Any], **row: Any) -> ServingFiles:
    """The files of an EAGLE-3 pair on a release of its own."""
    document = {
        "name": "27.01",
        "image": "registry.example.com/triton:1",
        "tensorrtLLM": "1.3.0",
        "LLMAPI": {"methods": ["Eagle3"], **support},
        "source": "a test",
        **row,
    }
    made = model(EAGLE3, runtime={"release": "27.01"})
    resolution = admit(made, table=load_table([document]), configuration=CONFIGURATION)
    return plan_serving(made.spec, resolution, facts=facts_of(made), models=models_of(model(EAGLE3))).files


def counting_files() -> ServingFiles:
    return files_by_row({}, perRequestAcceptance=True)


def pair(method: str, release: str) -> dict[str, Any]:
    spec = {
        **BASELINE,
        "speculation": {"method": method},
        # An image of one's own: some stock images can't serve the LLM API.
        "runtime": {"backend": "LLMAPI", "release": release, "image": {"reference": "registry.example.com/fixed:1"}},
    }
    return {**spec, "draft": EAGLE3["draft"]} if method in ("Eagle3", "DraftTarget") else spec


def spelled(files: ServingFiles) -> dict[str, Any]:
    """model.yaml as an image makes it that spells as its row says."""
    (template,) = files.templates
    text = template.files["1/model.yaml"]
    for probe in template.probes:
        text = text.replace(f"${{{probe.name}}}", probe.expected)
    document: dict[str, Any] = read_yaml(text)
    return document


def test_an_eagle3_head_drafts() -> None:
    assert yaml_of(files_of())["speculative_config"] == {
        "decoding_type": "Eagle",
        "speculative_model_dir": "/models/draft",
        "max_draft_len": 3,
    }


def test_the_baseline_does_not_speculate() -> None:
    assert "speculative_config" not in yaml_of(files_of(BASELINE))


@pytest.mark.parametrize("spec", [EAGLE3, BASELINE])
def test_what_triton_needs_is_in_both_files(spec: dict[str, Any]) -> None:
    files = files_of(spec)
    (template,) = files.templates

    assert template.fields == {"max_batch_size": 0, "model_transaction_policy.decoupled": False}
    assert yaml_of(files)["triton_config"] == {"max_batch_size": 0, "decoupled": False}


def test_serving_options_reach_the_engine() -> None:
    document = yaml_of(files_of(serving={"maxBatchSize": 3, "kvCache": {"freeGPUMemoryPercent": 55, "reuse": False}}))

    assert (document["max_batch_size"], document["kv_cache_config"]) == (
        3,
        {"enable_block_reuse": False, "free_gpu_memory_fraction": 0.55},
    )


def test_limits_and_policies_are_the_declared_ones() -> None:
    serving = {
        "maxSequenceLength": 4096,
        "maxBatchedTokens": 2048,
        "chunkedContext": True,
        "maxAttentionWindow": 1024,
        "schedulerPolicy": "MaxUtilization",
        "tokenizer": {"mode": "Slow"},
        "kvCache": {"maxTokens": 5000, "hostMemory": "2Gi"},
    }
    document = yaml_of(files_of(serving=serving))

    assert {key: document[key] for key in ("max_seq_len", "max_num_tokens", "enable_chunked_prefill")} == {
        "max_seq_len": 4096,
        "max_num_tokens": 2048,
        "enable_chunked_prefill": True,
    }
    assert document["kv_cache_config"] == {
        "enable_block_reuse": True,
        "free_gpu_memory_fraction": 0.8,
        "max_tokens": 5000,
        "host_cache_size": 2 * 1024**3,
        "max_attention_window": [1024],
    }
    assert document["scheduler_config"] == {"capacity_scheduler_policy": "MAX_UTILIZATION"}
    assert document["tokenizer_mode"] == "slow"


def test_what_is_not_declared_is_the_release_s_own() -> None:
    assert not {"max_seq_len", "max_num_tokens", "enable_chunked_prefill", "tokenizer_mode"} & set(yaml_of(files_of()))


@pytest.mark.parametrize(("release", "method"), SERVED)
def test_every_release_knows_all_that_it_is_told(release: str, method: str) -> None:
    serving = {
        "maxSequenceLength": 4096,
        "maxBatchedTokens": 2048,
        "chunkedContext": True,
        "maxAttentionWindow": 1024,
        "tokenizer": {"mode": "Slow"},
        "kvCache": {"maxTokens": 5000, "hostMemory": "2Gi"},
    }
    version = next(r.tensorrt_llm for r in TABLE.releases if r.name == release)
    assert version is not None
    for changes in ({}, {"serving": serving}):
        read = parse_arguments(spelled(files_of(pair(method, release), **changes)), KnownKeys.read(version))
        assert (read.speculation.method if read.speculation else "None") == method


@pytest.mark.parametrize(("release", "method"), [served for served in SERVED if served[1] != "None"])
def test_a_draft_s_length_is_told_under_the_release_s_key(release: str, method: str) -> None:
    document = spelled(files_of(pair(method, release), speculation__maxDraftTokens=3))
    version = next(r.tensorrt_llm for r in TABLE.releases if r.name == release)
    assert version is not None

    speculation = parse_arguments(document, KnownKeys.read(version)).speculation
    assert speculation is not None
    assert speculation.max_draft_len == 3


def test_the_image_is_asked_how_it_spells_draft_and_target() -> None:
    (template,) = files_of(pair("DraftTarget", "26.02")).templates
    (probe,) = template.probes

    assert "decoding_type: ${draft_target_decoding_type}" in template.files["1/model.yaml"]
    assert (probe.name, probe.class_name) == ("draft_target_decoding_type", "DraftTargetDecodingConfig")
    assert probe.expected == "DraftTarget"


@pytest.mark.parametrize("method", ["Eagle3", "NGram", "MTP", "None"])
def test_no_other_spelling_is_asked_for(method: str) -> None:
    (template,) = files_of(pair(method, "26.02")).templates

    assert template.probes == ()


@pytest.mark.parametrize(("options", "longest"), [({}, 4), ({"maxMatchingLength": 7}, 7)])
def test_n_grams_are_looked_up_as_declared_and_never_without_a_length(options: dict[str, int], longest: int) -> None:
    document = yaml_of(files_of(pair("NGram", "26.02"), speculation__nGram=options))

    assert document["speculative_config"]["max_matching_ngram_size"] == longest


def test_drafters_beside_the_target_s_engine_keep_the_scheduler_from_working_ahead() -> None:
    methods = ("DraftTarget", "NGram", "Eagle3", "MTP", "None")
    documents = {method: yaml_of(files_of(pair(method, "26.02"))) for method in methods}

    assert {m: d["disable_overlap_scheduler"] for m, d in documents.items() if "disable_overlap_scheduler" in d} == {
        "DraftTarget": True,
        "NGram": True,
    }


@pytest.mark.parametrize("release", ["25.06", "25.07"])
def test_tensorrt_llm_0_20_has_its_own_words_for_a_head_and_for_the_scheduler(release: str) -> None:
    document = yaml_of(files_of(pair("Eagle3", release)))

    assert document["pytorch_backend_config"] == {"disable_overlap_scheduler": True}
    assert "disable_overlap_scheduler" not in document
    assert document["speculative_config"]["pytorch_eagle_weights_path"] == "/models/draft"


def test_streaming_is_told_to_triton_and_to_the_model() -> None:
    files = files_of(serving={"streaming": True})
    (template,) = files.templates

    assert template.fields["model_transaction_policy.decoupled"] is True
    assert yaml_of(files)["triton_config"]["decoupled"] is True
    assert files.decoupled


def test_counts_are_asked_for_where_the_release_tells_true_ones() -> None:
    silent, counting = files_of(), counting_files()

    assert "sampling_param_return_perf_metrics" not in silent.generate_request
    assert ("return_perf_metrics" in yaml_of(silent), silent.counted) == (False, ())
    assert counting.generate_request["sampling_param_return_perf_metrics"] is True
    assert yaml_of(counting)["return_perf_metrics"] is True
    assert len(counting.counted) > 1


def test_the_target_is_split_over_its_gpus() -> None:
    document = yaml_of(files_of(target__parallelism={"tensor": 4}))

    assert (document["tensor_parallel_size"], document["pipeline_parallel_size"]) == (4, 1)


@pytest.mark.parametrize(("draft", "told"), [(1, ["4"]), (4, [])])
def test_a_draft_that_is_split_otherwise_than_declared_is_told(draft: int, told: list[str]) -> None:
    derived = files_of(target__parallelism={"tensor": 4}, draft__parallelism={"tensor": draft}).derived

    assert [found.value for found in derived if found.name == "draft.parallelism.tensor"] == told


def test_the_baseline_may_be_split_in_stages() -> None:
    document = yaml_of(files_of(BASELINE, target__parallelism={"tensor": 2, "pipeline": 2}))

    assert (document["tensor_parallel_size"], document["pipeline_parallel_size"]) == (2, 2)


def test_the_server_starts_without_mpi() -> None:
    argv = files_of(target__parallelism={"tensor": 4}).argv

    assert (argv[0], "mpirun" in argv) == ("/opt/tritonserver/bin/tritonserver", False)


def test_the_request_has_no_batch_dimension() -> None:
    assert {tensor.shape for tensor in files_of().tensors} == {(1,)}


def test_the_request_is_greedy() -> None:
    assert files_of().generate_request["sampling_param_temperature"] == 0.0


def test_clients_need_to_send_nothing_more() -> None:
    assert files_of().request_parameters == {}


def test_spellings_come_from_the_release() -> None:
    files = files_by_row(
        {"eagle3DecodingType": "Eagle3", "draftModelKey": "speculative_model", "template": ["/elsewhere"]}
    )

    assert yaml_of(files)["speculative_config"] == {
        "decoding_type": "Eagle3",
        "speculative_model": "/models/draft",
        "max_draft_len": 3,
    }
    assert files.templates[0].candidates == ("/elsewhere",)


def test_the_mpi_that_the_llm_api_starts_itself_is_made_for_a_pod() -> None:
    environment = files_of().environment
    assert environment["OMPI_MCA_btl_vader_single_copy_mechanism"] == "none"
    assert environment["OMPI_MCA_hwloc_base_binding_policy"] == "none"

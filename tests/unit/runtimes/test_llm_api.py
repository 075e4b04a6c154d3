from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from specdec_operator.planning.admission import admit
from specdec_operator.planning.plan import plan_serving
from specdec_operator.runtimes.table import load_table
from tests.unit.specs import BASELINE, CONFIGURATION, EAGLE3, facts_of, model, models_of, plan_of

if TYPE_CHECKING:
    from specdec_operator.runtimes.serving import ServingFiles


def files_of(spec: dict[str, Any] = EAGLE3, **changes: Any) -> ServingFiles:
    return plan_of(model(spec, **changes)).files


def yaml_of(files: ServingFiles) -> dict[str, Any]:
    (template,) = files.templates
    document: dict[str, Any] = yaml.safe_load(template.files["1/model.yaml"])
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


def test_the_target_is_split_over_its_gpus_and_never_in_a_pipeline() -> None:
    document = yaml_of(files_of(target__parallelism={"tensor": 4}))

    assert (document["tensor_parallel_size"], document["pipeline_parallel_size"]) == (4, 1)


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
    row = {
        "name": "27.01",
        "image": "registry.example.com/triton:1",
        "tensorrtLLM": "1.3.0",
        "LLMAPI": {
            "methods": ["Eagle3"],
            "eagle3DecodingType": "Eagle3",
            "draftModelKey": "speculative_model",
            "template": ["/elsewhere"],
        },
        "source": "a test",
    }
    made = model(EAGLE3, runtime={"release": "27.01"})
    resolution = admit(made, table=load_table([row]), configuration=CONFIGURATION)
    plan = plan_serving(made.spec, resolution, facts=facts_of(made), models=models_of(model(EAGLE3)))

    assert yaml_of(plan.files)["speculative_config"] == {
        "decoding_type": "Eagle3",
        "speculative_model": "/models/draft",
        "max_draft_len": 3,
    }
    assert plan.files.templates[0].candidates == ("/elsewhere",)


def test_the_mpi_that_the_llm_api_starts_itself_is_made_for_a_pod() -> None:
    environment = files_of().environment
    assert environment["OMPI_MCA_btl_vader_single_copy_mechanism"] == "none"
    assert environment["OMPI_MCA_hwloc_base_binding_policy"] == "none"

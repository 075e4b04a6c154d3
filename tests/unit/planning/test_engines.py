from __future__ import annotations

from typing import Any

import pytest

from specdec_operator.planning.admission import admit
from specdec_operator.planning.engines import plan_engines
from specdec_operator.planning.refusal import Refused
from specdec_operator.runtimes.table import load_table
from tests.unit.specs import (
    BASELINE,
    BASELINE_ENGINE,
    CONFIGURATION,
    DRAFT_TARGET,
    EAGLE3,
    engines_of,
    facts,
    facts_of,
    head,
    model,
    models_of,
)


def key_of(known: dict[str, Any] | None = None, **changes: Any) -> str:
    return engines_of(model(BASELINE_ENGINE, **changes), known)[0].spec.key


def argv(role: int, step: int, **changes: Any) -> list[str]:
    build = engines_of(model(DRAFT_TARGET, **changes))[role].spec.build
    assert build is not None
    return build.steps[step].argv


def option(arguments: list[str], name: str) -> str:
    return arguments[arguments.index(name) + 1]


@pytest.mark.parametrize("spec", [EAGLE3, BASELINE])
def test_the_llm_api_builds_nothing(spec: dict[str, Any]) -> None:
    assert engines_of(model(spec)) == ()


def test_a_pair_is_two_engines() -> None:
    assert [engine.role for engine in engines_of(model(DRAFT_TARGET))] == ["target-engine", "draft-engine"]


def test_the_target_verifies_drafted_tokens() -> None:
    assert argv(0, 1)[-4:] == ["--speculative_decoding_mode", "draft_tokens_external", "--max_draft_len", "10"]


def test_the_draft_s_engine_is_a_plain_one() -> None:
    assert "--speculative_decoding_mode" not in argv(1, 1)


def test_both_engines_give_logits_of_one_type() -> None:
    assert {option(argv(role, 1), "--logits_dtype") for role in (0, 1)} == {"float32"}


def test_both_engines_hold_the_drafted_tokens() -> None:
    assert {option(argv(role, 1), "--max_seq_len") for role in (0, 1)} == {"3082"}


def test_ranks_are_a_matter_of_the_checkpoint() -> None:
    assert (option(argv(0, 0), "--tp_size"), "--tp_size" in argv(0, 1)) == ("4", False)


def test_directories_have_placeholders() -> None:
    assert [option(argv(0, 0), "--model_dir"), option(argv(0, 0), "--output_dir")] == ["{model}", "{checkpoint}"]


def test_a_prompt_fits_into_one_batch_of_tokens() -> None:
    engine = {"maxInputLength": 20000, "maxSequenceLength": 24000}

    assert option(argv(0, 1, engine=engine), "--max_num_tokens") == "20000"


def test_an_engine_has_a_file_for_each_rank() -> None:
    assert [e.spec.build.ranks for e in engines_of(model(DRAFT_TARGET)) if e.spec.build] == [4, 1]


def test_an_engine_is_built_on_the_gpu_that_serves_it() -> None:
    (engine,) = engines_of(model(BASELINE_ENGINE))

    assert engine.spec.gpu is not None
    assert engine.spec.gpu.product == "NVIDIA-H100-80GB-HBM3"
    assert engine.spec.pod.node_selector["nvidia.com/gpu.product"] == "NVIDIA-H100-80GB-HBM3"


@pytest.mark.parametrize(
    "changes",
    [
        {"serving": {"maxBatchSize": 2}},
        {"serving": {"kvCache": {"freeGPUMemoryPercent": 50}}},
        {"serving": {"maxQueueDelayMicroseconds": 100}},
        {"replicas": 2},
        {"suspend": True},
        {"pod": {"labels": {"a": "b"}, "jobResources": {"memory": "64Gi"}, "tolerations": [{"operator": "Exists"}]}},
        {"service": {"type": "NodePort"}},
        {"update": {"strategy": "Surge"}},
        {"runtime": {"backend": "TensorRTEngine", "release": "26.05"}},
        {"target__source": {"huggingFace": {"repository": "a/mirror", "revision": "v2"}}},
    ],
)
def test_what_does_not_decide_the_content_is_no_part_of_the_key(changes: dict[str, Any]) -> None:
    assert key_of(**changes) == key_of()


@pytest.mark.parametrize(
    "changes",
    [
        {"engine": {"maxBatchSize": 5, "maxInputLength": 2048, "maxSequenceLength": 3072}},
        {"engine": {"maxBatchSize": 4, "maxInputLength": 2047, "maxSequenceLength": 3072}},
        {"engine": {"maxBatchSize": 4, "maxInputLength": 2048, "maxSequenceLength": 3073}},
        {"engine__dataType": "float16"},
        {"engine__logitsDataType": "float16"},
        {"target__parallelism": {"tensor": 2}},
        {"placement": {"gpu": {"product": "NVIDIA-A10"}}},
        {"runtime": {"backend": "TensorRTEngine", "release": "25.10"}},
        {"runtime": {"backend": "TensorRTEngine", "release": "26.04", "image": {"reference": "example.com/own:1"}}},
    ],
)
def test_what_decides_the_content_is_part_of_the_key(changes: dict[str, Any]) -> None:
    assert key_of(**changes) != key_of()


def test_another_commit_is_another_engine() -> None:
    assert key_of({"target": facts(commit="3" * 40)}) != key_of()


def test_a_claim_s_model_is_known_by_its_content() -> None:
    first, second = (key_of({"target": facts(commit="", content_digest=digest)}) for digest in ("aa", "bb"))

    assert first != second


def test_a_verifying_engine_is_not_the_baseline_s() -> None:
    alone = engines_of(model(BASELINE_ENGINE, target=DRAFT_TARGET["target"]))[0]

    assert alone.spec.key != engines_of(model(DRAFT_TARGET))[0].spec.key


def test_two_models_of_one_store_share_an_engine() -> None:
    first, second = (engines_of(model(BASELINE_ENGINE, name=name))[0] for name in ("one", "two"))

    assert (first.name, first.spec) == (second.name, second.spec)


def test_another_store_is_another_artifact_of_the_same_content() -> None:
    here, there = (engines_of(model(BASELINE_ENGINE, storage={"claimName": claim}))[0] for claim in ("here", "there"))

    assert (here.spec.key == there.spec.key, here.name == there.name) == (True, False)


def test_what_is_refused_is_said_for_every_model_at_once() -> None:
    known = {"target": facts(architecture="A"), "draft": facts(architecture="B")}

    with pytest.raises(Refused) as refused:
        engines_of(model(DRAFT_TARGET), known)

    assert [refusal.path for refusal in refused.value.refusals] == ["spec.target.source", "spec.draft.source"]


def test_a_target_that_can_not_be_split_is_refused_on_the_llm_api_too() -> None:
    made = model(EAGLE3, target__parallelism={"tensor": 3})

    with pytest.raises(Refused, match="can't be split over 3 GPUs"):
        engines_of(made, {"target": facts(), "draft": head()})


def test_the_converter_s_place_comes_from_the_release() -> None:
    row = {
        "name": "27.01",
        "image": "registry.example.com/triton:1",
        "tensorrtLLM": "1.3.0",
        "TensorRTEngine": {"methods": ["None"], "converters": {"llama": ["/elsewhere/convert.py"]}},
        "source": "a test",
    }
    made = model(BASELINE_ENGINE, runtime={"backend": "TensorRTEngine", "release": "27.01"})
    resolution = admit(made, table=load_table([row]), configuration=CONFIGURATION)
    places = {"target": models_of(model(BASELINE_ENGINE))[0].yields}
    (engine,) = plan_engines(made.spec, resolution, facts=facts_of(made), models={k: v for k, v in places.items() if v})

    assert engine.spec.build is not None
    assert engine.spec.build.steps[0].argv[:2] == ["python3", "/elsewhere/convert.py"]


def test_no_step_is_run_by_a_shell() -> None:
    programs = {argv(role, step)[0] for role in (0, 1) for step in (0, 1)}

    assert programs == {"python3", "trtllm-build"}

from __future__ import annotations

from typing import Any

import pytest

from specdec_operator.planning.admission import admit
from specdec_operator.planning.engines import plan_engines
from specdec_operator.planning.refusal import Refused
from specdec_operator.pod.inputs import InspectEngineInput
from specdec_operator.runtimes.table import load_table
from tests.unit.engine_specs import EAGLE, MEDUSA, REDRAFTER, eagle_head, engine_facts, medusa_heads
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


def test_what_is_refused_is_said_for_every_model_at_once() -> None:
    known = {"target": facts(architecture="A"), "draft": facts(architecture="B")}

    with pytest.raises(Refused) as refused:
        engines_of(model(DRAFT_TARGET), known)

    assert [refusal.path for refusal in refused.value.refusals] == ["spec.target.source", "spec.draft.source"]


def test_a_target_that_can_not_be_split_is_refused_on_the_llm_api_too() -> None:
    made = model(EAGLE3, target__parallelism={"tensor": 3})

    with pytest.raises(Refused, match="can't be split over 3 GPUs"):
        engines_of(made, {"target": facts(), "draft": head()})


def test_a_head_and_its_target_that_can_not_be_split_are_told_once() -> None:
    made = model(EAGLE3, target__parallelism={"tensor": 3})

    with pytest.raises(Refused) as caught:
        engines_of(made, {"target": facts(), "draft": head()})

    assert [refusal.path for refusal in caught.value.refusals] == ["spec.target.parallelism.tensor"]


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


def head_key(spec: dict[str, Any], draft: Any = None, **changes: Any) -> str:
    made = model(spec, **changes)
    known = engine_facts(made.spec.speculation.method)
    return engines_of(made, {**known, **({"draft": draft} if draft else {})})[0].spec.key


@pytest.mark.parametrize("spec", [EAGLE, MEDUSA, REDRAFTER])
def test_a_head_is_built_into_its_target_s_one_engine(spec: dict[str, Any]) -> None:
    made = model(spec)
    (engine,) = engines_of(made, engine_facts(made.spec.speculation.method))
    target, draft = models_of(made)

    assert engine.role == "target-engine"
    assert engine.spec.build is not None
    assert (engine.spec.build.model, engine.spec.build.head) == (target.yields, draft.yields)


def test_a_draft_model_is_no_head() -> None:
    builds = [engine.spec.build for engine in engines_of(model(DRAFT_TARGET))]

    assert [build.head for build in builds if build] == [None, None]


def test_another_head_is_another_engine() -> None:
    assert head_key(EAGLE, eagle_head(commit="9" * 40)) != head_key(EAGLE)


def test_other_files_of_a_head_are_another_engine() -> None:
    taken = {"huggingFace": {"repository": "a/head", "allowPatterns": ["*.json", "*.bin"]}}

    assert head_key(EAGLE, draft__source=taken) != head_key(EAGLE)


def test_files_of_a_draft_with_an_engine_of_its_own_are_no_part_of_the_target_s() -> None:
    taken = {"huggingFace": {"repository": "a/draft", "allowPatterns": ["*.json", "*.safetensors"]}}
    (target, draft), (whole, whole_draft) = (
        [engine.spec.key for engine in engines_of(made)]
        for made in (model(DRAFT_TARGET, draft__source=taken), model(DRAFT_TARGET))
    )

    assert (target == whole, draft == whole_draft) == (True, False)


def test_the_tree_of_a_request_is_no_part_of_the_key() -> None:
    tree = {"choices": {"preset": "mc_sim_7b_63"}}

    assert head_key(EAGLE, speculation__eagle=tree) == head_key(EAGLE)


def test_the_depth_that_a_tree_needs_is_part_of_the_key() -> None:
    tree = {"choices": {"paths": [[0, 0]]}}

    assert head_key(EAGLE, speculation__eagle=tree) != head_key(EAGLE)


def test_an_engine_is_built_for_the_tree_that_is_declared() -> None:
    made = model(EAGLE, speculation__eagle={"choices": {"paths": [[0, 0, 0], [1, 0]]}})
    build = engines_of(made, engine_facts("Eagle"))[0].spec.build

    assert build is not None
    assert option(build.steps[0].argv, "--num_eagle_layers") == "3"
    assert option(build.steps[0].argv, "--max_non_leaves_per_layer") == "2"


@pytest.mark.parametrize(("declared", "counted", "built"), [(None, 5, "5"), (3, 5, "3"), (None, None, "4")])
def test_medusa_heads_are_declared_or_counted(declared: int | None, counted: int | None, built: str) -> None:
    paths = {"choices": {"paths": [[0, 0, 0]]}}
    made = model(MEDUSA, speculation__medusa={**paths, **({"heads": declared} if declared else {})})
    known = {**engine_facts("Medusa"), "draft": medusa_heads(medusa_heads=counted)}
    build = engines_of(made, known)[0].spec.build

    assert build is not None
    assert option(build.steps[0].argv, "--num_medusa_heads") == built


def calibrated(source: dict[str, Any], samples: int = 512) -> dict[str, Any]:
    calibration = {"source": {"persistentVolumeClaim": source}, "samples": samples}
    return {"target__quantization": {"format": "FP8", "calibration": calibration}}


def test_calibration_texts_are_mounted_from_their_claim() -> None:
    (engine,) = engines_of(model(BASELINE_ENGINE, **calibrated({"claimName": "texts", "subPath": "cnn_dailymail"})))

    assert engine.spec.build is not None
    assert engine.spec.build.calibration is not None
    assert (engine.spec.build.calibration.claim_name, engine.spec.build.calibration.sub_path) == (
        "texts",
        "cnn_dailymail",
    )
    assert option(engine.spec.build.steps[0].argv, "--calib_dataset") == "{calibration}"


def test_more_calibration_texts_are_another_engine() -> None:
    assert key_of(**calibrated({"claimName": "a"})) != key_of(**calibrated({"claimName": "a"}, samples=64))


def test_a_quantizer_gets_gpus_that_hold_the_whole_model() -> None:
    known = {"target": facts(weight_bytes=141_000_000_000)}
    (engine,) = engines_of(model(BASELINE_ENGINE, target__quantization={"format": "FP8"}), known)

    assert engine.spec.gpu is not None
    assert engine.spec.gpu.count == 2


def test_a_proof_is_no_part_of_the_key() -> None:
    (engine,) = engines_of(model(BASELINE_ENGINE))
    (split,) = engines_of(model(BASELINE_ENGINE, engine__maxInputLength=16, engine__maxSequenceLength=3072))

    assert [[step.name for step in e.spec.build.steps] for e in (engine, split) if e.spec.build] == [
        ["convert", "build", "prove"],
        ["convert", "build"],
    ]


PREBUILT = {"prebuilt": {"target": {"claimName": "engines", "subPath": "llama-8b"}}}


def prebuilt(**changes: Any) -> Any:
    return engines_of(model(BASELINE_ENGINE, engine=PREBUILT, **changes))[0]


def test_a_prebuilt_engine_is_inspected_and_never_built() -> None:
    engine = prebuilt()

    assert (engine.spec.build, engine.spec.gpu, engine.spec.type) == (None, None, "Engine")
    assert engine.spec.claim_name == "engines"


def test_a_prebuilt_engine_is_served_from_where_it_lies() -> None:
    engine = prebuilt()

    assert (engine.yields.claim_name, engine.yields.sub_path) == ("engines", "llama-8b")


def test_what_a_prebuilt_engine_must_be_is_told_its_inspection() -> None:
    expected = InspectEngineInput.from_json(prebuilt(serving={"maxBatchSize": 2}).spec.prebuilt.expectation)

    assert (expected.tensorrt_llm_version, expected.engine.batch, expected.engine.prebuilt) == ("1.2.1", 2, True)


def test_a_prebuilt_engine_that_must_be_more_is_looked_at_again() -> None:
    assert prebuilt(serving={"maxBatchSize": 2}).name != prebuilt(serving={"maxBatchSize": 4}).name


def test_the_other_engine_of_a_pair_is_built() -> None:
    made = model(DRAFT_TARGET, engine={"prebuilt": {"draft": {"claimName": "engines"}}})
    target, draft = engines_of(made)

    assert (target.spec.build is not None, draft.spec.prebuilt is not None) == (True, True)


def test_an_image_whose_version_is_disputed_is_taken_with_any() -> None:
    (engine,) = engines_of(model(BASELINE_ENGINE, runtime={"backend": "TensorRTEngine", "release": "26.03"}))

    assert engine.spec.build is not None
    assert engine.spec.build.tensorrt_llm_version is None

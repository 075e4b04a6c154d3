from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from specdec_operator.planning.engine_rules import architecture_refusals, engine_refusals, is_prebuilt
from tests.unit.engine_specs import EAGLE, ENGINE_SPECS, MEDUSA, REDRAFTER, engine_facts
from tests.unit.specs import BASELINE_ENGINE, DRAFT_TARGET, PRODUCT, facts, model, resolution_of

if TYPE_CHECKING:
    from specdec_operator.planning.refusal import Refusal

PREBUILT = {"claimName": "engines", "subPath": "llama"}
ON_ONE_GPU: dict[str, Any] = {
    "target__parallelism": None,
    "placement": {"gpu": {"product": PRODUCT}, "draftDevices": [0], "targetDevices": [0]},
}


def of_architecture(spec: dict[str, Any], architecture: str, **changes: Any) -> list[Refusal]:
    made = model(spec, **changes)
    known = engine_facts(made.spec.speculation.method, architecture=architecture)
    return architecture_refusals(made.spec, resolution_of(made), known)


@pytest.mark.parametrize(
    "architecture",
    ["LlamaForCausalLM", "Qwen2ForCausalLM", "OPTForCausalLM", "GPT2LMHeadModel", "Gemma2ForCausalLM"],
)
def test_a_family_with_a_converter_is_taken(architecture: str) -> None:
    assert of_architecture(BASELINE_ENGINE, architecture) == []


def test_an_unknown_architecture_is_refused_with_the_list() -> None:
    (refusal,) = of_architecture(BASELINE_ENGINE, "MambaForCausalLM")

    assert (refusal.reason, refusal.path) == ("UnsupportedArchitecture", "spec.target.source")
    assert refusal.message.startswith(
        "no converter is known for MambaForCausalLM on TensorRTEngine; known: BloomForCausalLM, FalconForCausalLM, "
    )


def test_a_draft_model_s_architecture_is_judged_too() -> None:
    made = model(DRAFT_TARGET)
    known = {"target": facts(), "draft": facts(architecture="MambaForCausalLM")}

    assert [r.path for r in architecture_refusals(made.spec, resolution_of(made), known)] == ["spec.draft.source"]


def test_a_family_newer_than_the_release_is_refused() -> None:
    (refusal,) = of_architecture(
        BASELINE_ENGINE, "Qwen3ForCausalLM", runtime={"backend": "TensorRTEngine", "release": "25.08"}
    )

    assert refusal.message.startswith("Qwen3ForCausalLM is converted from TensorRT-LLM 1.0.0 on, release 25.08 holds ")


def test_a_family_is_taken_by_the_first_release_with_its_converter() -> None:
    first = {"backend": "TensorRTEngine", "release": "25.09"}

    assert of_architecture(BASELINE_ENGINE, "Qwen3ForCausalLM", runtime=first) == []


@pytest.mark.parametrize("release", ["25.01", "25.08"])
@pytest.mark.parametrize(
    ("changes", "given"),
    [
        ({"architecture": "Qwen2ForCausalLM"}, "Qwen2ForCausalLM"),
        ({"quantization": "modelopt_fp8"}, "LlamaForCausalLM published in modelopt_fp8"),
    ],
)
def test_a_drafter_converter_of_one_step_takes_llama_in_16_bits_alone(
    release: str, changes: dict[str, Any], given: str
) -> None:
    made = model(REDRAFTER, runtime={"backend": "TensorRTEngine", "release": release})
    known = engine_facts("ReDrafter", **changes)
    (refusal,) = architecture_refusals(made.spec, resolution_of(made), known)

    assert (refusal.reason, refusal.path) == ("UnsupportedArchitecture", "spec.target.source")
    assert f"in 16 bits alone for ReDrafter, not {given}: name a release with TensorRT-LLM 1.0" in refusal.message


@pytest.mark.parametrize(
    ("spec", "architecture"),
    [
        (EAGLE, "Qwen2ForCausalLM"),
        (EAGLE, "MistralForCausalLM"),
        (MEDUSA, "OPTForCausalLM"),
        (REDRAFTER, "GPTJForCausalLM"),
    ],
)
def test_a_head_on_a_family_that_its_converter_does_not_take_is_refused(
    spec: dict[str, Any], architecture: str
) -> None:
    assert [(r.reason, r.path) for r in of_architecture(spec, architecture)] == [
        ("UnsupportedArchitecture", "spec.target.source")
    ]


def test_the_families_that_a_head_goes_with_are_named() -> None:
    (refusal,) = of_architecture(MEDUSA, "OPTForCausalLM")

    assert refusal.message == (
        "Medusa engines are built for LlamaForCausalLM, MixtralForCausalLM, Qwen2ForCausalLM, not for OPTForCausalLM: "
        "use DraftTarget, or Eagle3 on the backend LLMAPI"
    )


@pytest.mark.parametrize(("spec", "architecture"), [(MEDUSA, "Qwen2ForCausalLM"), (REDRAFTER, "Qwen2ForCausalLM")])
def test_heads_go_with_more_than_llama_where_their_converters_do(spec: dict[str, Any], architecture: str) -> None:
    assert of_architecture(spec, architecture) == []


def test_a_family_that_the_quantizer_does_not_know_is_refused() -> None:
    (refusal,) = of_architecture(BASELINE_ENGINE, "OPTForCausalLM", target__quantization={"format": "FP8"})

    assert (refusal.reason, refusal.path) == ("QuantizationUnsupported", "spec.target.quantization.format")


@pytest.mark.parametrize(
    ("published", "asked", "path"),
    [
        ("modelopt_fp8", {"format": "FP8"}, "spec.target.quantization"),
        ("gptq", None, "spec.target.source"),
        ("awq", None, "spec.target.source"),
    ],
)
def test_a_model_published_quantized_is_not_converted_from_it(
    published: str, asked: dict[str, str] | None, path: str
) -> None:
    made = model(BASELINE_ENGINE, target__quantization=asked)
    known = {"target": facts(quantization=published)}
    (refusal,) = architecture_refusals(made.spec, resolution_of(made), known)

    assert (refusal.reason, refusal.path) == ("QuantizationUnsupported", path)


def test_a_model_published_by_the_quantizer_is_converted_as_it_is() -> None:
    made = model(BASELINE_ENGINE)

    assert architecture_refusals(made.spec, resolution_of(made), {"target": facts(quantization="modelopt_fp8")}) == []


def test_a_converter_without_stages_is_named() -> None:
    (refusal,) = of_architecture(BASELINE_ENGINE, "GemmaForCausalLM", target__parallelism={"pipeline": 2})

    assert (refusal.reason, refusal.path) == ("ParallelismMismatch", "spec.target.parallelism.pipeline")


def test_a_prebuilt_engine_needs_no_converter() -> None:
    engine = {"prebuilt": {"target": PREBUILT}}

    assert of_architecture(BASELINE_ENGINE, "MambaForCausalLM", engine=engine) == []


@pytest.mark.parametrize("spec", ENGINE_SPECS.values(), ids=ENGINE_SPECS)
def test_every_method_s_plain_spec_is_taken(spec: dict[str, Any]) -> None:
    made = model(spec)

    assert engine_refusals(made.spec, resolution_of(made)) == []


def test_a_prebuilt_draft_engine_of_a_head_is_refused() -> None:
    made = model(EAGLE, engine={"prebuilt": {"draft": PREBUILT}})
    (refusal,) = engine_refusals(made.spec, resolution_of(model(EAGLE)))

    assert (refusal.reason, refusal.path) == ("PrebuiltUnused", "spec.engine.prebuilt.draft")


def test_one_engine_of_a_pair_may_be_prebuilt() -> None:
    made = model(DRAFT_TARGET, engine={"prebuilt": {"draft": PREBUILT}})

    assert (is_prebuilt("target", made.spec), is_prebuilt("draft", made.spec)) == (False, True)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("engine.maxInputLength", 512),
        ("engine.maxBatchedTokens", 512),
        ("engine.dataType", "bfloat16"),
        ("engine.extraBuildArguments", {"multiple_profiles": "enable"}),
        ("placement.gpu.buildResourceClaimTemplate", "one-gpu"),
    ],
)
def test_an_option_that_only_a_build_takes_is_refused_where_nothing_is_built(option: str, value: object) -> None:
    asked: dict[str, Any] = {option.replace(".", "__"): value}
    gpu = {"product": PRODUCT, "resourceClaimTemplate": "gpus"}
    made = model(BASELINE_ENGINE, engine={"prebuilt": {"target": PREBUILT}}, placement__gpu=gpu, **asked)
    (refusal,) = engine_refusals(made.spec, resolution_of(model(BASELINE_ENGINE)))

    assert (refusal.reason, refusal.path) == ("PrebuiltUnused", f"spec.{option}")
    assert refusal.message == (
        "every engine is built already, and no build takes it: remove it, or remove engine.prebuilt"
    )


def test_a_build_beside_a_prebuilt_engine_keeps_its_options() -> None:
    made = model(DRAFT_TARGET, engine={"prebuilt": {"draft": PREBUILT}, "maxInputLength": 512})

    assert engine_refusals(made.spec, resolution_of(model(DRAFT_TARGET))) == []


@pytest.mark.parametrize(
    ("spec", "remedy"),
    [
        (BASELINE_ENGINE, "Use the backend LLMAPI for others"),
        (EAGLE, "Use NGram, or Eagle3 with a head made for the target, on the backend LLMAPI for others"),
    ],
)
def test_the_remedy_for_an_unknown_architecture_is_one_that_serves(spec: dict[str, Any], remedy: str) -> None:
    (refusal,) = of_architecture(spec, "DeepseekV3ForCausalLM")

    assert refusal.message.endswith(f". {remedy}")


@pytest.mark.parametrize("role", ["target", "draft"])
def test_an_engine_that_is_built_already_takes_no_other_precision(role: str) -> None:
    quantized: dict[str, Any] = {f"{role}__quantization": {"format": "FP8", "calibration": {"samples": 64}}}
    made = model(DRAFT_TARGET, engine={"prebuilt": {role: PREBUILT}}, **quantized)
    (refusal,) = engine_refusals(made.spec, resolution_of(model(DRAFT_TARGET)))

    assert (refusal.reason, refusal.path) == ("PrebuiltUnused", f"spec.{role}.quantization")
    assert refusal.message == (
        f"the {role}'s engine is built already, and it keeps its own precision: remove it, or remove "
        f"engine.prebuilt.{role}"
    )


def test_the_precision_of_an_engine_that_is_built_beside_a_prebuilt_one_is_taken() -> None:
    made = model(DRAFT_TARGET, engine={"prebuilt": {"draft": PREBUILT}}, target__quantization={"format": "FP8"})

    assert engine_refusals(made.spec, resolution_of(model(DRAFT_TARGET))) == []


def test_the_precision_of_a_prebuilt_engine_tells_how_much_of_a_shared_gpu_it_leaves() -> None:
    made = model(
        DRAFT_TARGET, **ON_ONE_GPU, engine={"prebuilt": {"draft": PREBUILT}}, draft__quantization={"format": "FP8"}
    )

    assert engine_refusals(made.spec, resolution_of(model(DRAFT_TARGET, **ON_ONE_GPU))) == []


@pytest.mark.parametrize("role", ["target", "draft"])
def test_nothing_is_calibrated_for_an_engine_that_is_built_already(role: str) -> None:
    calibrated: dict[str, Any] = {f"{role}__quantization": {"format": "FP8", "calibration": {"samples": 64}}}
    made = model(DRAFT_TARGET, **ON_ONE_GPU, engine={"prebuilt": {role: PREBUILT}}, **calibrated)
    (refusal,) = engine_refusals(made.spec, resolution_of(model(DRAFT_TARGET)))

    assert (refusal.reason, refusal.path) == ("PrebuiltUnused", f"spec.{role}.quantization.calibration")
    assert refusal.message == (
        f"the {role}'s engine is built already, and nothing is calibrated: remove it, or remove engine.prebuilt.{role}"
    )

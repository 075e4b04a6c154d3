from __future__ import annotations

from typing import Any

import pytest

from specdec_operator.planning.admission import refusals
from specdec_operator.planning.quantization_rules import quantization_refusals
from specdec_operator.runtimes.table import load_table
from tests.unit.engine_specs import EAGLE, LOOKAHEAD, MEDUSA, REDRAFTER
from tests.unit.specs import BASELINE, BASELINE_ENGINE, CONFIGURATION, DRAFT_TARGET, TABLE, model, resolution_of

FORMAT = "spec.target.quantization.format"
CACHE = "spec.target.quantization.keyValueCacheDataType"


def refused(spec: dict[str, Any], role: str = "target", **changes: Any) -> list[tuple[str, str, str]]:
    quantization = changes.pop("quantization")
    made = model(spec, **{f"{role}__quantization": quantization}, **changes)
    sound = resolution_of(model(spec, **changes))
    return [(r.reason, r.path, r.message) for r in quantization_refusals(made.spec, sound)]


def reasons(spec: dict[str, Any], role: str = "target", **changes: Any) -> list[tuple[str, str]]:
    return [(reason, path) for reason, path, _ in refused(spec, role, **changes)]


@pytest.mark.parametrize("spec", [BASELINE_ENGINE, DRAFT_TARGET, LOOKAHEAD])
@pytest.mark.parametrize("form", ["FP8", "INT8SmoothQuant", "INT4AWQ", "W4A8AWQ", "INT8WeightOnly", "INT4WeightOnly"])
def test_methods_without_a_built_in_head_take_every_format(spec: dict[str, Any], form: str) -> None:
    assert refused(spec, quantization={"format": form}) == []


@pytest.mark.parametrize("drafts", ["FP8", None])
@pytest.mark.parametrize("targets", ["FP8", None])
def test_draft_and_target_mix_their_formats(drafts: str | None, targets: str | None) -> None:
    changes: dict[str, Any] = {
        "draft__quantization": {"format": drafts} if drafts else None,
        "target__quantization": {"format": targets} if targets else None,
    }
    made = model(DRAFT_TARGET, **changes)

    assert quantization_refusals(made.spec, resolution_of(made)) == []


def test_an_eagle_target_is_not_quantized_by_calibration() -> None:
    ((reason, path, message),) = refused(EAGLE, quantization={"format": "FP8"})

    assert (reason, path) == ("QuantizationUnsupported", FORMAT)
    assert message == (
        "Eagle engines are built in INT8WeightOnly, INT4WeightOnly or the model's own precision, not in FP8: choose "
        "one of these, or remove quantization"
    )


@pytest.mark.parametrize(
    ("spec", "form"), [(EAGLE, "INT8WeightOnly"), (MEDUSA, "FP8"), (MEDUSA, "INT4WeightOnly"), (REDRAFTER, "FP8")]
)
def test_heads_go_with_the_formats_of_their_converters(spec: dict[str, Any], form: str) -> None:
    assert refused(spec, quantization={"format": form}) == []


@pytest.mark.parametrize("spec", [MEDUSA, REDRAFTER])
def test_heads_go_with_no_other_format(spec: dict[str, Any]) -> None:
    assert reasons(spec, quantization={"format": "INT4AWQ"}) == [("QuantizationUnsupported", FORMAT)]


@pytest.mark.parametrize(("release", "taken"), [("25.08", False), ("25.09", True)])
def test_a_drafter_goes_with_fp8_from_the_converter_of_two_steps_on(release: str, *, taken: bool) -> None:
    runtime = {"backend": "TensorRTEngine", "release": release}
    found = reasons(REDRAFTER, quantization={"format": "FP8"}, runtime=runtime)

    assert found == ([] if taken else [("QuantizationUnsupported", FORMAT)])


def test_a_head_has_no_format_of_its_own() -> None:
    assert refused(EAGLE, "draft", quantization={"format": "FP8"}) == [
        (
            "QuantizationUnsupported",
            "spec.draft.quantization",
            "a head is built into its target's engine: use spec.target.quantization",
        )
    ]


def test_a_draft_model_has_a_format_of_its_own() -> None:
    assert refused(DRAFT_TARGET, "draft", quantization={"format": "FP8"}) == []


def test_only_engines_are_quantized() -> None:
    assert refused(BASELINE, quantization={"format": "FP8"}) == [
        (
            "QuantizationUnsupported",
            "spec.target.quantization",
            "models are quantized for engines only; on LLMAPI, name a model that is published quantized",
        )
    ]


def test_a_release_makes_what_its_row_says() -> None:
    row = {
        "name": "27.01",
        "image": "registry.example.com/triton:1",
        "tensorrtLLM": "1.2.1",
        "TensorRTEngine": {"methods": ["None"], "quantizationFormats": ["INT8SmoothQuant", "FP8"]},
        "source": "a test",
    }
    made = model(
        BASELINE_ENGINE,
        runtime={"backend": "TensorRTEngine", "release": "27.01"},
        target__quantization={"format": "INT4AWQ"},
    )
    (refusal,) = refusals(made, table=load_table([row]), configuration=CONFIGURATION)

    assert refusal.message == (
        "release 27.01 makes INT8SmoothQuant, FP8, not INT4AWQ: choose one of these, or another runtime.release"
    )


@pytest.mark.parametrize(
    ("product", "form", "least"),
    [
        ("NVIDIA-A100-SXM4-80GB", "FP8", "8.9"),
        ("NVIDIA-H100-80GB-HBM3", "NVFP4", "10.0"),
        ("Tesla-T4", "W4A8AWQ", "8.9"),
    ],
)
def test_a_gpu_too_old_for_a_format_is_refused(product: str, form: str, least: str) -> None:
    placement = {"gpu": {"product": product}}
    ((reason, path, message),) = refused(BASELINE_ENGINE, quantization={"format": form}, placement=placement)

    assert (reason, path) == ("GpuTooOld", FORMAT)
    assert message.startswith(f"{form} needs GPUs of compute capability {least}, {product} has ")


def test_a_gpu_that_is_not_known_is_for_the_build_to_judge() -> None:
    placement = {"gpu": {"product": "NVIDIA-Z9"}}

    assert refused(BASELINE_ENGINE, quantization={"format": "NVFP4"}, placement=placement) == []


def test_a_gpu_too_old_for_an_fp8_cache_is_refused() -> None:
    quantization = {"format": "INT8SmoothQuant", "keyValueCacheDataType": "FP8"}
    changes: dict[str, Any] = {
        "placement": {"gpu": {"product": "NVIDIA-A100-SXM4-80GB"}},
        "serving": {"kvCache": {"reuse": False}},
    }

    assert reasons(BASELINE_ENGINE, quantization=quantization, **changes) == [("GpuTooOld", CACHE)]


@pytest.mark.parametrize(
    ("form", "cache", "path"),
    [("INT4AWQ", None, FORMAT), ("INT8WeightOnly", None, FORMAT), ("FP8", "INT8", CACHE)],
)
def test_integers_are_not_for_data_centre_blackwell(form: str, cache: str | None, path: str) -> None:
    changes: dict[str, Any] = {
        "placement": {"gpu": {"product": "NVIDIA-B200"}},
        "serving": {"kvCache": {"reuse": False}},
    }
    quantization = {"format": form, **({"keyValueCacheDataType": cache} if cache else {})}

    assert reasons(BASELINE_ENGINE, quantization=quantization, **changes) == [("QuantizationUnsupported", path)]


@pytest.mark.parametrize(
    ("spec", "serving"), [(BASELINE_ENGINE, {}), (LOOKAHEAD, {"kvCache": {"reuse": False}})], ids=["reuse", "drafts"]
)
def test_an_int8_cache_goes_with_neither_reuse_nor_drafts(spec: dict[str, Any], serving: dict[str, Any]) -> None:
    quantization = {"format": "INT8SmoothQuant", "keyValueCacheDataType": "INT8"}

    assert reasons(spec, quantization=quantization, serving=serving) == [("QuantizationUnsupported", CACHE)]


def test_a_baseline_without_reuse_may_have_an_int8_cache() -> None:
    quantization = {"format": "INT8SmoothQuant", "keyValueCacheDataType": "INT8"}

    assert refused(BASELINE_ENGINE, quantization=quantization, serving={"kvCache": {"reuse": False}}) == []


@pytest.mark.parametrize("form", ["INT8SmoothQuant", "INT4AWQ"])
@pytest.mark.parametrize(
    ("spec", "serving", "why"),
    [
        (BASELINE_ENGINE, {}, "serving.kvCache.reuse needs"),
        (BASELINE_ENGINE, {"kvCache": {"reuse": False}, "chunkedContext": True}, "serving.chunkedContext needs"),
        (DRAFT_TARGET, {}, "speculation.method DraftTarget and serving.kvCache.reuse need"),
    ],
)
def test_an_fp8_cache_is_read_in_pages_only_beside_weights_of_that_kind(
    spec: dict[str, Any], form: str, serving: dict[str, Any], why: str
) -> None:
    quantization = {"format": form, "keyValueCacheDataType": "FP8"}
    ((reason, path, message),) = refused(spec, quantization=quantization, serving=serving)

    assert (reason, path) == ("QuantizationUnsupported", CACHE)
    assert message.startswith(f"{why} attention over a paged context, which reads no FP8 cache in {form} engines")


@pytest.mark.parametrize("form", ["FP8", "W4A8AWQ"])
def test_an_fp8_cache_goes_with_formats_whose_attention_is_fp8(form: str) -> None:
    assert refused(DRAFT_TARGET, quantization={"format": form, "keyValueCacheDataType": "FP8"}) == []


def test_chunks_go_with_no_int8_cache() -> None:
    quantization = {"format": "FP8", "keyValueCacheDataType": "INT8"}
    serving = {"kvCache": {"reuse": False}, "chunkedContext": True}

    assert reasons(BASELINE_ENGINE, quantization=quantization, serving=serving) == [("QuantizationUnsupported", CACHE)]


def test_a_weight_only_format_has_no_cache_type() -> None:
    quantization = {"format": "INT8WeightOnly", "keyValueCacheDataType": "FP8"}

    assert reasons(BASELINE_ENGINE, quantization=quantization) == [("QuantizationUnsupported", CACHE)]


def test_what_is_wrong_with_a_format_is_said_before_anything_is_fetched() -> None:
    made = model(EAGLE, target__quantization={"format": "NVFP4"})

    assert [r.reason for r in refusals(made, table=TABLE, configuration=CONFIGURATION)] == [
        "QuantizationUnsupported",
        "GpuTooOld",
    ]

from __future__ import annotations

from typing import Any

import pytest

from specdec_operator.planning.admission import admit
from specdec_operator.planning.engines import plan_engines
from specdec_operator.planning.refusal import Refused
from specdec_operator.runtimes.table import load_table
from tests.unit.specs import (
    BASELINE_ENGINE,
    CONFIGURATION,
    DRAFT_TARGET,
    PRODUCT,
    engines_of,
    facts,
    facts_of,
    model,
    models_of,
)


def key_of(known: dict[str, Any] | None = None, **changes: Any) -> str:
    return engines_of(model(BASELINE_ENGINE, **changes), known)[0].spec.key


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
        {"runtime__image": {"reference": "nvcr.io/nvidia/tritonserver:26.04-trtllm-python-py3"}},
        {"target__source": {"huggingFace": {"repository": "a/mirror", "revision": "v2"}}},
        {"placement": {"gpu": {"product": PRODUCT, "memory": "80Gi"}}},
        {"serving": {"maxAttentionWindow": 512}},
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
        {"engine__maxBatchedTokens": 16384},
        {"engine__extraBuildArguments": {"reduce_fusion": "enable"}},
        {"target__parallelism": {"pipeline": 2}},
        {"target__quantization": {"format": "FP8"}},
        {"target__quantization": {"format": "INT8WeightOnly"}},
        {"placement": {"gpu": {"product": PRODUCT, "resourceName": "nvidia.com/mig-7g.80gb"}}},
        {"placement": {"gpu": {"product": f"{PRODUCT}-MIG-7g.80gb"}}},
        {"speculation": {"method": "Lookahead"}},
    ],
)
def test_what_decides_the_content_is_part_of_the_key(changes: dict[str, Any]) -> None:
    assert key_of(**changes) != key_of()


@pytest.mark.parametrize(
    ("row", "shared"),
    [
        ({"name": "26.04-own", "like": "26.04", "image": "registry.example.com/triton:1"}, False),
        ({"name": "26.04", "like": "26.04", "image": "registry.example.com/triton:1"}, False),
        ({"name": "26.04-own", "like": "26.04"}, True),
    ],
)
def test_a_row_with_an_image_of_its_own_has_engines_of_its_own(row: dict[str, Any], *, shared: bool) -> None:
    made = model(BASELINE_ENGINE, runtime={"backend": "TensorRTEngine", "release": row["name"]})
    resolution = admit(made, table=load_table([{**row, "source": "a test"}]), configuration=CONFIGURATION)
    places = {request.role: request.yields for request in models_of(model(BASELINE_ENGINE)) if request.yields}
    (engine,) = plan_engines(made.spec, resolution, facts=facts_of(made), models=places)

    assert (engine.spec.key == key_of()) is shared


def test_another_commit_is_another_engine() -> None:
    assert key_of({"target": facts(commit="3" * 40)}) != key_of()


def hub_key(**patterns: list[str]) -> str:
    return key_of(target__source={"huggingFace": {"repository": "a/b", **patterns}})


@pytest.mark.parametrize(
    "patterns",
    [
        {"allowPatterns": ["*.json", "model-*.safetensors"]},
        {"ignorePatterns": ["original/*"]},
    ],
)
def test_other_files_of_one_commit_are_another_engine(patterns: dict[str, list[str]]) -> None:
    assert hub_key(**patterns) != hub_key()


def test_files_that_are_taken_are_not_files_that_are_left() -> None:
    assert hub_key(allowPatterns=["*.bin"]) != hub_key(ignorePatterns=["*.bin"])


def test_the_order_of_file_patterns_changes_no_engine() -> None:
    assert hub_key(allowPatterns=["*.json", "*.bin"]) == hub_key(allowPatterns=["*.bin", "*.json"])


def test_an_engine_without_file_patterns_keeps_the_key_that_built_it() -> None:
    assert hub_key() == "79d248e59bc9e0b1a1c1441428b3f6a3bbc3b6b08c92646df43885c5fab92dd2"


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


def test_a_quantizer_that_needs_more_gpus_than_a_claim_template_gives_is_refused() -> None:
    gpu = {"product": "NVIDIA-L40S", "resourceClaimTemplate": "one-gpu"}
    made = model(BASELINE_ENGINE, target__quantization={"format": "FP8"}, placement={"gpu": gpu})

    with pytest.raises(Refused) as caught:
        engines_of(made, {"target": facts(weight_bytes=60 * 1024**3)})

    (refusal,) = caught.value.refusals
    assert (refusal.reason, refusal.path) == ("GpuMemoryTooSmall", "spec.placement.gpu.resourceClaimTemplate")
    assert refusal.message == (
        "the quantizer needs 2 GPUs for the target, and the template gives the 1 of a serving pod: name GPUs with more "
        "memory, use resourceName in its place, or remove target.quantization"
    )


PAIR_BY_CLAIM = {"product": PRODUCT, "resourceClaimTemplate": "five-gpus"}


@pytest.mark.parametrize(
    ("gpu", "claimed"),
    [(PAIR_BY_CLAIM, "five-gpus"), ({**PAIR_BY_CLAIM, "buildResourceClaimTemplate": "one-gpu"}, "one-gpu")],
)
def test_a_build_claims_by_a_template_of_its_own_or_by_the_pods(gpu: dict[str, Any], claimed: str) -> None:
    engines = engines_of(model(DRAFT_TARGET, placement__gpu=gpu))

    assert [e.spec.gpu.resource_claim_template for e in engines if e.spec.gpu] == [claimed, claimed]


def test_a_template_of_builds_changes_no_engine() -> None:
    own = {**PAIR_BY_CLAIM, "buildResourceClaimTemplate": "one-gpu"}
    named, left_out = (engines_of(model(DRAFT_TARGET, placement__gpu=gpu)) for gpu in (own, PAIR_BY_CLAIM))

    assert [engine.spec.key for engine in named] == [engine.spec.key for engine in left_out]


def test_a_quantizer_that_needs_more_gpus_than_a_template_of_builds_gives_is_refused() -> None:
    gpu = {"product": "NVIDIA-L40S", "resourceClaimTemplate": "two-gpus", "buildResourceClaimTemplate": "one-gpu"}
    split: dict[str, Any] = {"target__quantization": {"format": "FP8"}, "target__parallelism": {"tensor": 2}}
    made = model(BASELINE_ENGINE, **split, placement={"gpu": gpu})

    with pytest.raises(Refused) as caught:
        engines_of(made, {"target": facts(weight_bytes=60 * 1024**3)})

    (refusal,) = caught.value.refusals
    assert (refusal.reason, refusal.path) == ("GpuMemoryTooSmall", "spec.placement.gpu.buildResourceClaimTemplate")
    assert refusal.message == (
        "the quantizer needs 2 GPUs for the target, and a build's template gives 1: name GPUs with more memory, remove "
        "buildResourceClaimTemplate (the template of serving pods gives 2), or remove target.quantization"
    )

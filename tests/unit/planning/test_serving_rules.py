from __future__ import annotations

from typing import Any

import pytest

from specdec_operator.planning.serving_rules import refusals
from tests.unit.specs import BASELINE, model
from tests.vectors.engine_rows import rows

SPECS = {row.name: row.spec for row in rows()}
PAIR, SHARED = SPECS["draft-target-on-own-gpus"], SPECS["draft-target-on-one-gpu"]
ONE_ENGINE = SPECS["baseline"]


def refused(spec: Any, backend: Any = "TensorRTEngine", **changes: Any) -> list[tuple[str, str]]:
    return [(refusal.path, refusal.message) for refusal in refusals(model(spec, **changes).spec, backend)]


@pytest.mark.parametrize("row", SPECS)
def test_the_documented_rows_are_served(row: str) -> None:
    assert refused(SPECS[row]) == []


@pytest.mark.parametrize(
    ("option", "value", "backends", "remedy"),
    [
        ("maxQueueDelayMicroseconds", 1, "TensorRTEngine has", "remove it"),
        ("maxQueueSize", 1, "TensorRTEngine has", "remove it"),
        ("maxAttentionWindow", 8, "LLMAPI and TensorRTEngine has", "remove it"),
        ("schedulerPolicy", "MaxUtilization", "LLMAPI and TensorRTEngine has", "remove it"),
        ("normalizeLogProbabilities", False, "TensorRTEngine has", "remove it"),
        ("accumulateTokens", True, "TensorRTEngine has", "remove it"),
        ("decodingMode", "TopK", "TensorRTEngine has", "remove it"),
        ("kvCache.hostMemory", "1Gi", "LLMAPI and TensorRTEngine has", "remove it"),
        ("instances.preprocessing", 1, "TensorRTEngine has", "remove it"),
        ("instances.postprocessing", 1, "TensorRTEngine has", "remove it"),
        ("instances.businessLogic", 1, "TensorRTEngine has", "remove it"),
        ("tokenizer.addSpecialTokens", False, "TensorRTEngine has", "remove it"),
        ("tokenizer.skipSpecialTokens", False, "TensorRTEngine has", "remove it"),
    ],
)
def test_an_option_that_the_backend_lacks_is_refused(option: str, value: object, backends: str, remedy: str) -> None:
    changes = {f"serving__{option.replace('.', '__')}": value}

    assert refused(BASELINE, "VLLM", **changes) == [
        (f"spec.serving.{option}", f"VLLM has no such option, {backends}: {remedy}")
    ]


@pytest.mark.parametrize(
    ("option", "value", "remedy"),
    [
        ("maxSequenceLength", 64, "engines are built for a length: give engine.maxSequenceLength"),
        ("maxBatchedTokens", 64, "engines are built for a number of tokens: give engine.maxBatchedTokens"),
        ("tokenizer.mode", "Slow", "remove it"),
    ],
)
def test_an_option_that_engines_lack_is_refused(option: str, value: object, remedy: str) -> None:
    changes = {f"serving__{option.replace('.', '__')}": value}

    assert refused(ONE_ENGINE, **changes) == [
        (f"spec.serving.{option}", f"TensorRTEngine has no such option, LLMAPI and VLLM has: {remedy}")
    ]


def test_a_pair_of_engines_can_t_stream() -> None:
    assert refused(PAIR, serving__streaming=True) == [
        (
            "spec.serving.streaming",
            "a draft and a target on TensorRTEngine answer in one piece: leave streaming out, or use the LLM API",
        )
    ]


def test_whole_answers_are_not_accumulated() -> None:
    assert refused(ONE_ENGINE, serving__accumulateTokens=True) == [
        (
            "spec.serving.accumulateTokens",
            "answers that come in one piece are not accumulated: set streaming as well, or remove it",
        )
    ]


@pytest.mark.parametrize("row", ["eagle", "medusa", "lookahead", "redrafter"])
def test_a_method_that_decides_how_tokens_are_chosen_takes_no_decoding_mode(row: str) -> None:
    method = SPECS[row]["speculation"]["method"]

    assert refused(SPECS[row], serving__decodingMode="TopK") == [
        ("spec.serving.decodingMode", f"{method} decides how tokens are chosen: remove decodingMode")
    ]


def test_copies_of_a_model_that_is_not_there_are_refused() -> None:
    assert refused(ONE_ENGINE, serving__instances={"businessLogic": 2}) == [
        (
            "spec.serving.instances.businessLogic",
            "only a draft and a target, or accumulateTokens, are served through business logic: remove it",
        )
    ]


def test_fast_logits_need_gpus_of_their_own() -> None:
    assert refused(SHARED, speculation__draftTarget={"logitsTransfer": "Fast"}) == [
        (
            "spec.speculation.draftTarget.logitsTransfer",
            (
                "fast logits go from GPU to GPU, and draftDevices and targetDevices have one in common: choose "
                "Standard or Disabled, or give each model devices of its own"
            ),
        )
    ]


@pytest.mark.parametrize("transfer", ["Standard", "Disabled"])
def test_other_logits_may_share_a_gpu(transfer: str) -> None:
    assert refused(SHARED, speculation__draftTarget={"logitsTransfer": transfer}) == []


@pytest.mark.parametrize("row", ["eagle", "redrafter"])
def test_a_head_that_runs_in_one_stage_is_not_split_into_stages(row: str) -> None:
    method = SPECS[row]["speculation"]["method"]

    assert refused(SPECS[row], target__parallelism={"pipeline": 2}) == [
        (
            "spec.target.parallelism.pipeline",
            f"{method} on TensorRTEngine runs in one pipeline stage: set pipeline to 1 and raise tensor instead",
        )
    ]


@pytest.mark.parametrize("row", ["medusa", "lookahead", "baseline", "draft-target-on-own-gpus"])
def test_other_engines_are_split_into_stages(row: str) -> None:
    assert refused(SPECS[row], target__parallelism={"pipeline": 2}) == []


def test_the_llm_api_splits_only_the_baseline_into_stages() -> None:
    speculating = {**BASELINE, "speculation": {"method": "NGram"}}
    stages = {"target__parallelism": {"pipeline": 2}}

    assert refused(BASELINE, "LLMAPI", **stages) == []
    assert [path for path, _ in refused(speculating, "LLMAPI", **stages)] == ["spec.target.parallelism.pipeline"]


def test_a_draft_s_cache_is_reused() -> None:
    assert refused(PAIR, serving={"draftKvCache": {"reuse": False}}) == [
        ("spec.serving.draftKvCache.reuse", "the draft needs the cache of its earlier steps: leave reuse true")
    ]


@pytest.mark.parametrize("backend", ["LLMAPI", "VLLM"])
def test_an_order_of_devices_that_a_backend_does_not_take_is_refused(backend: str) -> None:
    split = {**BASELINE, "target": {**BASELINE["target"], "parallelism": {"tensor": 2}}}

    assert refused(split, backend, placement={"targetDevices": [0, 1]}) == []
    assert refused(split, backend, placement={"targetDevices": [1, 0]}) == [
        (
            "spec.placement.targetDevices",
            f"{backend} takes a pod's GPUs in their own order: list targetDevices from 0 on, or leave them out",
        )
    ]

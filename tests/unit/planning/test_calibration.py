from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from specdec_operator.api.v1alpha1.model_artifact import MountedModel
from specdec_operator.planning.calibration import acquire_texts, texts_of
from specdec_operator.planning.engines import plan_engines
from tests.unit.specs import BASELINE, BASELINE_ENGINE, CONFIGURATION, DRAFT_TARGET, facts_of, model, resolution_of

if TYPE_CHECKING:
    from specdec_operator.planning.acquire import ArtifactRequest

HUB = {"huggingFace": {"repository": "abisee/cnn_dailymail", "revision": "v1"}}
CLAIM = {"persistentVolumeClaim": {"claimName": "texts", "subPath": "news"}}


def quantized(source: dict[str, Any] | None, **changes: Any) -> dict[str, Any]:
    return {"format": "FP8", "calibration": {**({"source": source} if source else {}), **changes}}


def texts(spec: dict[str, Any], **changes: Any) -> tuple[ArtifactRequest, ...]:
    made = model(spec, **changes)
    return acquire_texts(made.spec, resolution_of(made), configuration=CONFIGURATION)


def test_a_data_set_of_a_hub_is_fetched_into_the_store() -> None:
    (request,) = texts(BASELINE_ENGINE, target__quantization=quantized(HUB))

    assert request.role == "target-calibration"
    assert request.spec.fetch is not None
    assert (request.spec.fetch.content, request.spec.fetch.repository, request.spec.fetch.revision) == (
        "DataSet",
        "abisee/cnn_dailymail",
        "v1",
    )


def test_a_data_set_keeps_its_name_by_which_the_quantizer_knows_it() -> None:
    (request,) = texts(BASELINE_ENGINE, target__quantization=quantized(HUB))

    assert request.yields is not None
    assert request.yields.sub_path.endswith("/cnn_dailymail")


@pytest.mark.parametrize("source", [CLAIM, None])
def test_nothing_is_fetched_of_texts_that_are_there(source: dict[str, Any] | None) -> None:
    assert texts(BASELINE_ENGINE, target__quantization=quantized(source)) == ()


def test_nothing_is_fetched_without_quantization() -> None:
    assert texts(BASELINE) == texts(BASELINE_ENGINE) == ()


def test_draft_and_target_have_texts_of_their_own() -> None:
    both = texts(DRAFT_TARGET, target__quantization=quantized(HUB), draft__quantization=quantized(HUB))

    assert [request.role for request in both] == ["target-calibration", "draft-calibration"]
    assert both[0].name == both[1].name


def test_a_prebuilt_engine_is_not_calibrated() -> None:
    engine = {"prebuilt": {"target": {"claimName": "engines"}}}

    assert texts(BASELINE_ENGINE, target__quantization=quantized(HUB), engine=engine) == ()


def test_another_revision_is_another_data_set() -> None:
    other = {"huggingFace": {**HUB["huggingFace"], "revision": "v2"}}
    first, second = (texts(BASELINE_ENGINE, target__quantization=quantized(source))[0] for source in (HUB, other))

    assert first.name != second.name


def test_texts_on_a_claim_lie_where_it_says() -> None:
    made = model(BASELINE_ENGINE, target__quantization=quantized(CLAIM))

    assert texts_of("target", made.spec, {}) == MountedModel(claim_name="texts", sub_path="news")


def test_an_engine_is_calibrated_with_what_was_fetched() -> None:
    made = model(BASELINE_ENGINE, target__quantization=quantized(HUB))
    (fetched,) = texts(BASELINE_ENGINE, target__quantization=quantized(HUB))
    assert fetched.yields is not None
    places = {"target": MountedModel(claim_name="models"), fetched.role: fetched.yields}
    (engine,) = plan_engines(made.spec, resolution_of(made), facts=facts_of(made), models=places)

    assert engine.spec.build is not None
    assert engine.spec.build.calibration == fetched.yields

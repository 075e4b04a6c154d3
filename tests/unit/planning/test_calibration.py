from __future__ import annotations

from typing import TYPE_CHECKING, Any

from specdec_operator.api.v1alpha1.artifact_inputs import MountedModel
from specdec_operator.api.v1alpha1.model_facts import DataSetFacts
from specdec_operator.planning.acquire import commit_pins
from specdec_operator.planning.calibration import acquire_texts
from tests.unit.specs import BASELINE, BASELINE_ENGINE, CONFIGURATION, DRAFT_TARGET, engines_of, model, resolution_of

if TYPE_CHECKING:
    from specdec_operator.planning.artifact_request import ArtifactRequest

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


def test_the_quantizer_s_own_texts_are_left_to_it() -> None:
    assert texts(BASELINE_ENGINE, target__quantization=quantized(None)) == ()


def test_texts_on_a_claim_are_inspected_where_they_lie() -> None:
    (request,) = texts(BASELINE_ENGINE, target__quantization=quantized(CLAIM))

    assert (request.spec.fetch, request.spec.claim_name, request.role) == (None, "texts", "target-calibration")
    assert request.spec.inspect is not None
    assert (request.spec.inspect.content, request.spec.inspect.sub_path) == ("DataSet", "news")


def test_nothing_is_fetched_without_quantization() -> None:
    assert texts(BASELINE) == texts(BASELINE_ENGINE) == ()


def test_draft_and_target_have_texts_of_their_own() -> None:
    both = texts(DRAFT_TARGET, target__quantization=quantized(HUB), draft__quantization=quantized(HUB))

    assert [request.role for request in both] == ["target-calibration", "draft-calibration"]
    assert both[0].name == both[1].name


def test_a_prebuilt_engine_is_not_calibrated() -> None:
    engine = {"prebuilt": {"target": {"claimName": "engines"}}}

    made = model(BASELINE_ENGINE, target__quantization=quantized(HUB), engine=engine)

    assert acquire_texts(made.spec, resolution_of(model(BASELINE_ENGINE)), configuration=CONFIGURATION) == ()


def test_another_revision_is_another_data_set() -> None:
    other = {"huggingFace": {**HUB["huggingFace"], "revision": "v2"}}
    first, second = (texts(BASELINE_ENGINE, target__quantization=quantized(source))[0] for source in (HUB, other))

    assert first.name != second.name


def test_texts_on_a_claim_lie_where_it_says() -> None:
    (request,) = texts(BASELINE_ENGINE, target__quantization=quantized(CLAIM))

    assert request.yields == MountedModel(claim_name="texts", sub_path="news")


def test_a_refresh_looks_at_the_texts_on_a_claim_again() -> None:
    made = model(BASELINE_ENGINE, target__quantization=quantized(CLAIM))
    first, second = (
        acquire_texts(made.spec, resolution_of(made), configuration=CONFIGURATION, refresh=refresh)[0].name
        for refresh in ("1", "2")
    )

    assert first != second


def key_of(found: DataSetFacts, source: dict[str, Any] = CLAIM) -> str:
    made = model(BASELINE_ENGINE, target__quantization=quantized(source))
    return engines_of(made, data_sets=found)[0].spec.key


def test_other_content_in_the_same_directory_is_another_engine() -> None:
    assert key_of(DataSetFacts(content_digest="aa")) != key_of(DataSetFacts(content_digest="bb"))


def test_a_branch_that_moved_is_another_engine() -> None:
    assert key_of(DataSetFacts(commit="1" * 40), HUB) != key_of(DataSetFacts(commit="2" * 40), HUB)


def test_equal_texts_elsewhere_are_the_same_engine() -> None:
    elsewhere = {"persistentVolumeClaim": {"claimName": "copies", "subPath": "another/news"}}

    assert key_of(DataSetFacts(content_digest="aa")) == key_of(DataSetFacts(content_digest="aa"), elsewhere)


def test_equal_texts_in_a_directory_of_another_name_are_read_otherwise() -> None:
    renamed = {"persistentVolumeClaim": {"claimName": "texts", "subPath": "cnn_dailymail"}}

    assert key_of(DataSetFacts(content_digest="aa")) != key_of(DataSetFacts(content_digest="aa"), renamed)


def test_what_patterns_leave_out_of_a_commit_makes_another_engine() -> None:
    part = {"huggingFace": {**HUB["huggingFace"], "allowPatterns": ["*.parquet"]}}

    assert key_of(DataSetFacts(commit="1" * 40), HUB) != key_of(DataSetFacts(commit="1" * 40), part)


def test_a_moving_revision_of_a_data_set_is_pinned_to_its_commit() -> None:
    made = model(DRAFT_TARGET, draft__quantization=quantized({"huggingFace": {"repository": "a/texts"}}))
    asked = acquire_texts(made.spec, resolution_of(made), configuration=CONFIGURATION)
    pins = commit_pins(asked, (), commits={"draft-calibration": "1" * 40})
    (again,) = acquire_texts(made.spec, resolution_of(made), configuration=CONFIGURATION, pins=pins)

    assert [(pin.name, pin.value) for pin in pins] == [
        ("draft.quantization.calibration.source.huggingFace.revision", "1" * 40)
    ]
    assert again.spec.fetch is not None
    assert (again.name, again.spec.fetch.revision) == (asked[0].name, "1" * 40)


def test_an_engine_is_calibrated_with_what_was_fetched() -> None:
    (fetched,) = texts(BASELINE_ENGINE, target__quantization=quantized(HUB))
    (engine,) = engines_of(model(BASELINE_ENGINE, target__quantization=quantized(HUB)))

    assert engine.spec.build is not None
    assert engine.spec.build.calibration == fetched.yields

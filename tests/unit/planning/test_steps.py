from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from specdec_operator.planning.refusal import Refused
from specdec_operator.planning.steps import ContentFacts, ContentStep, acquire_content
from tests.unit.specs import (
    BASELINE,
    BASELINE_ENGINE,
    CONFIGURATION,
    DATA_SET,
    DRAFT_TARGET,
    EAGLE3,
    facts,
    facts_of,
    model,
    plan_of,
    resolution_of,
)

if TYPE_CHECKING:
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModel

CALIBRATED = {"format": "FP8", "calibration": {"source": {"persistentVolumeClaim": {"claimName": "texts"}}}}


def content_of(made: SpeculativeModel) -> ContentStep:
    return acquire_content(made.spec, resolution_of(made), configuration=CONFIGURATION)


def test_a_quantizers_texts_are_asked_for_with_the_models() -> None:
    content = content_of(model(BASELINE_ENGINE, target__quantization=CALIBRATED))
    assert [request.role for request in content.requests] == ["target", "target-calibration"]


def test_a_pair_that_fits_has_its_engines() -> None:
    made = model(DRAFT_TARGET)
    engines = content_of(made).pair(ContentFacts(models=facts_of(made)))
    assert [request.role for request in engines.requests] == ["target-engine", "draft-engine"]


def test_an_engine_is_built_with_the_texts_that_were_asked_for() -> None:
    made = model(BASELINE_ENGINE, target__quantization=CALIBRATED)
    known = ContentFacts(models=facts_of(made), data_sets={"target-calibration": DATA_SET})
    (engine,) = content_of(made).pair(known).requests
    assert engine.spec.build
    assert engine.spec.build.calibration
    assert engine.spec.build.calibration.claim_name == "texts"


def test_a_pair_that_does_not_fit_has_no_next_step() -> None:
    made = model(EAGLE3)
    with pytest.raises(Refused):
        content_of(made).pair(ContentFacts(models={"target": facts(), "draft": facts()}))


@pytest.mark.parametrize(("backend", "refused"), [("LLMAPI", True), ("VLLM", False)])
def test_a_context_that_yarn_stretches_is_served_where_the_backend_stretches_it(backend: str, *, refused: bool) -> None:
    made = model(BASELINE, runtime__backend=backend, serving__maxSequenceLength=65536)
    target = facts(context_length=131072, unstretched_context_length=32768)
    step = content_of(made)

    if refused:
        with pytest.raises(Refused, match="the target's context of 32768"):
            step.pair(ContentFacts(models={"target": target}))
    else:
        assert step.pair(ContentFacts(models={"target": target})).facts.models["target"].context_length == 131072


def test_the_claims_of_serving_are_without_the_quantizers_texts() -> None:
    made = model(BASELINE_ENGINE, target__quantization=CALIBRATED)
    known = ContentFacts(models=facts_of(made), data_sets={"target-calibration": DATA_SET})
    assert "texts" not in content_of(made).pair(known).claims


def test_serving_is_planned_from_what_the_steps_before_found() -> None:
    made = model(BASELINE)
    engines = content_of(made).pair(ContentFacts(models=facts_of(made)))
    assert engines.serving(digests={}, single_node=()) == plan_of(made)

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from specdec_operator.planning.engine_expectations import engine_expectation
from tests.unit.engine_specs import EAGLE, LOOKAHEAD, MEDUSA, REDRAFTER, engine_facts
from tests.unit.specs import BASELINE_ENGINE, DRAFT_TARGET, model, plan_of, resolution_of

if TYPE_CHECKING:
    from specdec_operator.pod.inputs import EngineExpectation


def expected(spec: dict[str, Any], role: str = "target", **changes: Any) -> EngineExpectation:
    made = model(spec, **changes)
    return engine_expectation(role, made.spec, resolution_of(made), directory="/engines/target", digest="ab")


@pytest.mark.parametrize(
    ("spec", "mode", "draft_tokens"),
    [
        (BASELINE_ENGINE, "none", 0),
        (DRAFT_TARGET, "draft_tokens_external", 10),
        (EAGLE, "eagle", 63),
        (MEDUSA, "medusa", 63),
        (LOOKAHEAD, "lookahead_decoding", 83),
        (REDRAFTER, "explicit_draft_tokens", 25),
    ],
)
def test_an_engine_speculates_as_its_method_does(spec: dict[str, Any], mode: str, draft_tokens: int) -> None:
    engine = expected(spec)

    assert (engine.speculative_mode, engine.draft_tokens) == (mode, draft_tokens)


def test_a_draft_s_engine_is_a_plain_one() -> None:
    assert (expected(DRAFT_TARGET, "draft").speculative_mode, expected(DRAFT_TARGET, "draft").draft_tokens) == (
        "none",
        0,
    )


def test_an_engine_takes_as_many_requests_as_are_served() -> None:
    assert expected(BASELINE_ENGINE, serving={"maxBatchSize": 2}).batch == 2


def test_an_engine_has_the_ranks_of_its_split() -> None:
    engine = expected(BASELINE_ENGINE, target__parallelism={"tensor": 4, "pipeline": 2})

    assert (engine.ranks, engine.tensor, engine.pipeline) == (8, 4, 2)


def test_the_serving_pod_checks_each_engine_against_the_plan() -> None:
    target, draft = plan_of(model(DRAFT_TARGET)).check.engines

    assert (target.speculative_mode, target.digest, draft.directory) == (
        "draft_tokens_external",
        "ef" * 32,
        "/engines/draft",
    )


def test_a_head_s_target_is_checked_alone() -> None:
    made = model(EAGLE)
    (engine,) = plan_of(made, engine_facts("Eagle")).check.engines

    assert engine.speculative_mode == "eagle"


@pytest.mark.parametrize("role", ["target", "draft"])
def test_a_prebuilt_engine_holds_the_declared_length_and_what_is_drafted(role: str) -> None:
    given = {"maxSequenceLength": 3072, "prebuilt": {role: {"claimName": "engines"}}}

    assert expected(DRAFT_TARGET, role, engine=given).sequence_length == 3082


def test_a_length_that_is_not_declared_is_not_asked_of_a_prebuilt_engine() -> None:
    given = {"prebuilt": {"target": {"claimName": "engines"}}}

    assert expected(BASELINE_ENGINE, engine=given).sequence_length == 0

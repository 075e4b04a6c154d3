from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from specdec_operator.planning.engine_limits import (
    limit_refusals,
    limits,
    ranks_of,
    serving_batch,
    split_refusals,
)
from tests.unit.engine_specs import EAGLE, MEDUSA, REDRAFTER
from tests.unit.specs import BASELINE, BASELINE_ENGINE, DRAFT_TARGET, EAGLE3, facts, head, model, resolution_of

if TYPE_CHECKING:
    from specdec_operator.runtimes.build_steps import EngineLimits


def limits_of(spec: dict[str, Any], known: dict[str, Any] | None = None, **changes: Any) -> EngineLimits:
    made = model(spec, **changes)
    return limits(made.spec, resolution_of(made), known or {"target": facts()})


def refused(spec: dict[str, Any], known: dict[str, Any], **changes: Any) -> list[tuple[str, str]]:
    made = model(spec, **changes)
    limit = limits(made.spec, resolution_of(made), known)
    return [(r.reason, r.path) for r in limit_refusals(made.spec, limit, known)]


@pytest.mark.parametrize(
    ("engine", "serving", "built_for", "served"),
    [(None, None, 8, 8), (4, None, 4, 4), (None, 4, 4, 4), (8, 4, 8, 4), (None, 16, 16, 16)],
)
def test_batches_left_out_are_each_other_s(
    engine: int | None, serving: int | None, built_for: int, served: int
) -> None:
    changes: dict[str, Any] = {
        "engine__maxBatchSize": engine,
        "serving": {"maxBatchSize": serving} if serving else None,
    }
    made = model(BASELINE_ENGINE, **changes)

    assert (limits_of(BASELINE_ENGINE, **changes).batch, serving_batch(made.spec)) == (built_for, served)


def test_the_sequence_left_out_is_moderate() -> None:
    assert limits_of(BASELINE_ENGINE, engine=None).sequence_length == 3072


def test_the_sequence_left_out_is_no_longer_than_the_context() -> None:
    assert limits_of(BASELINE_ENGINE, {"target": facts(context_length=256)}, engine=None).sequence_length == 256


def test_the_sequence_left_out_holds_a_long_prompt_and_an_answer() -> None:
    assert limits_of(BASELINE_ENGINE, engine={"maxInputLength": 8000}).sequence_length == 12000


def test_drafted_tokens_are_added_to_the_sequence() -> None:
    assert limits_of(DRAFT_TARGET, {"target": facts(), "draft": facts()}).sequence_length == 3072 + 10


def test_the_prompt_left_out_is_two_thirds_of_the_sequence() -> None:
    assert limits_of(BASELINE_ENGINE, engine={"maxSequenceLength": 300}).input_length == 200


@pytest.mark.parametrize(
    ("declared", "built"), [("bfloat16", "bfloat16"), ("float16", "float16"), ("float32", "float16")]
)
def test_the_engine_calculates_in_the_model_s_own_type_where_it_can(declared: str, built: str) -> None:
    assert limits_of(BASELINE_ENGINE, {"target": facts(data_type=declared)}).data_type == built


def test_a_sequence_beyond_a_model_s_context_is_refused() -> None:
    assert refused(DRAFT_TARGET, {"target": facts(), "draft": facts(context_length=2048)}) == [
        ("ContextTooShort", "spec.engine.maxSequenceLength")
    ]


def test_a_prompt_that_leaves_no_room_for_an_answer_is_refused() -> None:
    known = {"target": facts(context_length=1024)}

    assert refused(BASELINE_ENGINE, known, engine={"maxInputLength": 1024}) == [
        ("ContextTooShort", "spec.engine.maxInputLength")
    ]


def test_a_context_shorter_than_the_drafted_tokens_is_refused() -> None:
    known = {"target": facts(context_length=8), "draft": facts(context_length=8)}

    assert refused(DRAFT_TARGET, known, engine=None) == [("ContextTooShort", "spec.speculation.maxDraftTokens")]


def test_a_head_s_context_limits_no_engine() -> None:
    made = model(EAGLE)

    assert limits(made.spec, resolution_of(made), {"target": facts(), "draft": head()}).sequence_length == 3072 + 63


def test_declared_tokens_of_a_batch_are_taken() -> None:
    assert limits_of(BASELINE_ENGINE, engine={"maxBatchedTokens": 4096}).batched_tokens == 4096


def test_a_batch_holds_every_request_s_drafted_tokens() -> None:
    known = {"target": facts(), "draft": facts()}

    assert limits_of(DRAFT_TARGET, known, engine={"maxBatchSize": 2048}).batched_tokens == 2048 * 11


def test_a_prompt_that_no_batch_of_tokens_takes_is_refused() -> None:
    engine = {"maxInputLength": 2048, "maxSequenceLength": 3072, "maxBatchedTokens": 1024}

    assert refused(BASELINE_ENGINE, {"target": facts()}, engine=engine) == [
        ("BatchedTokensTooFew", "spec.engine.maxBatchedTokens")
    ]


def test_a_prompt_may_be_taken_in_pieces() -> None:
    engine = {"maxInputLength": 2048, "maxSequenceLength": 3072, "maxBatchedTokens": 1024}
    known = {"target": facts()}

    assert refused(BASELINE_ENGINE, known, engine=engine, serving={"chunkedContext": True}) == []


def test_drafted_tokens_that_no_batch_takes_are_refused() -> None:
    engine = {"maxBatchSize": 512, "maxInputLength": 2048, "maxSequenceLength": 3072, "maxBatchedTokens": 4096}
    made = model(DRAFT_TARGET, engine=engine)
    known = {"target": facts(), "draft": facts()}
    (refusal,) = limit_refusals(made.spec, limits(made.spec, resolution_of(made), known), known)

    assert refusal.message == (
        "4096 tokens are too few, since 512 requests with 10 drafted tokens and one of their own each take 5632: raise "
        "it to 5632, or leave it out"
    )


@pytest.mark.parametrize("stages", [1, 2, 4, 16])
def test_layers_that_divide_are_split_into_stages(stages: int) -> None:
    made = model(BASELINE_ENGINE, target__parallelism={"pipeline": stages})

    assert split_refusals(made.spec, {"target": facts()}) == []


def test_layers_that_do_not_divide_are_refused() -> None:
    made = model(BASELINE_ENGINE, target__parallelism={"pipeline": 3})

    assert [r.path for r in split_refusals(made.spec, {"target": facts()})] == ["spec.target.parallelism.pipeline"]


@pytest.mark.parametrize("spec", [MEDUSA, REDRAFTER])
def test_heads_without_attention_are_not_split(spec: dict[str, Any]) -> None:
    made = model(spec, target__parallelism={"tensor": 4})

    assert split_refusals(made.spec, {"target": facts(), "draft": facts(attention_heads=3)}) == []


def test_ranks_are_stages_of_tensor_parallel_groups() -> None:
    assert ranks_of("target", model(BASELINE_ENGINE, target__parallelism={"tensor": 4, "pipeline": 2}).spec) == 8


def test_limits_that_fit_are_not_refused() -> None:
    assert refused(DRAFT_TARGET, {"target": facts(), "draft": facts()}) == []


@pytest.mark.parametrize("ranks", [1, 2, 4, 8, 16, 32])
def test_heads_that_divide_are_split(ranks: int) -> None:
    made = model(BASELINE, target__parallelism={"tensor": ranks})

    assert split_refusals(made.spec, {"target": facts()}) == []


@pytest.mark.parametrize("ranks", [3, 5, 12, 64])
def test_heads_that_do_not_divide_are_refused(ranks: int) -> None:
    made = model(BASELINE, target__parallelism={"tensor": ranks})

    assert [r.path for r in split_refusals(made.spec, {"target": facts()})] == ["spec.target.parallelism.tensor"]


def test_a_head_is_split_like_its_target() -> None:
    made = model(EAGLE3, target__parallelism={"tensor": 4})

    refusals = split_refusals(made.spec, {"draft": head(attention_heads=6)})

    assert (ranks_of("draft", made.spec), refusals[0].path) == (4, "spec.target.parallelism.tensor")


def test_a_draft_model_has_ranks_of_its_own() -> None:
    assert ranks_of("draft", model(DRAFT_TARGET).spec) == 1

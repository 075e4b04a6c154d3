"""Whatever the API server takes is planned, or refused with a field and a remedy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import assume, given

from specdec_operator.api.configuration import OperatorConfiguration
from specdec_operator.planning.admission import admit
from specdec_operator.planning.pair import check_pair
from specdec_operator.planning.plan import ServingPlan
from specdec_operator.planning.refusal import Refused
from tests.unit.specs import CONFIGURATION, TABLE, engines_of, model, plan_of, resolution_of
from tests.unit.strategies import is_taken, model_facts, served_specs, specs

if TYPE_CHECKING:
    from specdec_operator.api.v1alpha1.model_facts import ModelFacts
    from specdec_operator.planning.refusal import Refusal
    from tests.unit.strategies import Json


def planned(spec: Json, target: ModelFacts, draft: ModelFacts) -> ServingPlan | tuple[Refusal, ...]:
    made = model(spec)
    known = {"target": target, "draft": draft} if made.spec.draft else {"target": target}
    try:
        admit(made, table=TABLE, configuration=CONFIGURATION)
        check_pair(made.spec, resolution_of(made), known)
        engines_of(made, known)
        return plan_of(made, known)
    except Refused as refused:
        return refused.refusals


@given(spec=specs(), target=model_facts(), draft=model_facts())
def test_a_spec_is_planned_or_refused_with_a_field_a_reason_and_a_remedy(
    spec: Json, target: ModelFacts, draft: ModelFacts
) -> None:
    assume(is_taken(spec))
    outcome = planned(spec, target, draft)

    if not isinstance(outcome, ServingPlan):
        assert outcome
        assert all(r.path.startswith("spec.") and r.reason.isalnum() and len(r.message) > 20 for r in outcome)


@given(spec=served_specs())
def test_a_plan_s_ranks_are_disjoint_complete_and_within_the_world(spec: Json) -> None:
    placement = plan_of(model(spec)).resolution.placement
    ranks = [rank for entry in placement.models for rank in entry.participant_ids]

    assert sorted([0] * placement.orchestrator + ranks) == [*range(placement.world_size)] * bool(ranks)


@given(spec=served_specs())
def test_a_plan_s_devices_count_from_zero_without_a_gap(spec: Json) -> None:
    placement = plan_of(model(spec)).resolution.placement

    assert sorted(device for entry in placement.models for device in entry.devices) == [*range(placement.gpus)]


@given(spec=served_specs())
def test_every_rank_is_started(spec: Json) -> None:
    plan = plan_of(model(spec))
    world = plan.resolution.placement.world_size

    assert plan.files.argv.count("/opt/tritonserver/bin/tritonserver") == world


@given(spec=served_specs())
def test_a_plan_says_the_same_twice(spec: Json) -> None:
    assert plan_of(model(spec)) == plan_of(model(spec))


def test_the_operator_s_defaults_are_enough_for_the_smallest_spec() -> None:
    configuration = OperatorConfiguration.model_validate({"storage": {"claimName": "store"}})
    spec = {"target": {"source": {"huggingFace": {"repository": "a/b"}}}, "speculation": {"method": "None"}}

    assert admit(model(spec), table=TABLE, configuration=configuration).store_claim == "store"

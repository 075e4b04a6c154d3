"""Any spec over the whole schema is taken or not by the API server, and what is taken is planned or refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import assume, given, settings

from specdec_operator.api.findings import check_document
from specdec_operator.planning.admission import admit
from specdec_operator.planning.pair import check_pair
from specdec_operator.planning.plan import ServingPlan, revision_key
from specdec_operator.planning.refusal import Refused
from tests.unit.specs import CONFIGURATION, TABLE, engines_of, model, plan_of, resolution_of
from tests.unit.strategies import is_taken
from tests.unit.whole_schema import specs_past_a_bound, whole_cases

if TYPE_CHECKING:
    from specdec_operator.api.v1alpha1.model_facts import ModelFacts
    from specdec_operator.planning.placement import PodPlacement
    from specdec_operator.planning.refusal import Refusal
    from tests.unit.whole_schema import Json

# The same examples everywhere: what fails on one machine fails on all.
thorough = settings(max_examples=250, derandomize=True, deadline=None)


def planned(spec: Json, known: dict[str, ModelFacts]) -> ServingPlan | tuple[Refusal, ...]:
    made = model(spec)
    try:
        admit(made, table=TABLE, configuration=CONFIGURATION)
        check_pair(made.spec, resolution_of(made), known)
        engines_of(made, known)
        return plan_of(made, known)
    except Refused as refused:
        return refused.refusals


def ranks_are_sound(placement: PodPlacement) -> bool:
    ranks = [rank for entry in placement.models for rank in entry.participant_ids]
    whole = [0] * placement.orchestrator + ranks
    return not ranks or sorted(whole) == [*range(placement.world_size)]


@thorough
@given(case=whole_cases())
def test_whatever_is_taken_is_planned_or_refused_with_a_field_a_reason_and_a_remedy(
    case: tuple[Json, dict[str, ModelFacts]],
) -> None:
    spec, known = case
    assume(is_taken(spec))
    outcome = planned(spec, known)

    if isinstance(outcome, ServingPlan):
        assert revision_key(model(spec).spec, outcome, assembly_digest="ef" * 32)
    else:
        assert outcome
        assert all(r.path.startswith("spec.") and r.reason.isalnum() and len(r.message) > 20 for r in outcome)


@thorough
@given(case=whole_cases())
def test_ranks_of_whatever_is_planned_are_disjoint_complete_and_within_the_world(
    case: tuple[Json, dict[str, ModelFacts]],
) -> None:
    spec, known = case
    assume(is_taken(spec))
    outcome = planned(spec, known)

    assert not isinstance(outcome, ServingPlan) or ranks_are_sound(outcome.resolution.placement)


@thorough
@given(past=specs_past_a_bound())
def test_a_value_past_its_bound_is_not_taken_and_its_field_is_named(past: tuple[Json, str]) -> None:
    spec, path = past
    document = {"apiVersion": "specdec.dev/v1alpha1", "kind": "SpeculativeModel", "metadata": {"name": "model"}}
    found = [finding.path for finding in check_document({**document, "spec": spec})]

    assert any(path.startswith(named) or named.startswith(path) for named in found), f"{path} is not among {found}"

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdec_operator.api.v1alpha1.speculative_model import default_backend
from specdec_operator.planning.placement import logits_transfer, place
from tests.unit.specs import BASELINE, BASELINE_ENGINE, DRAFT_TARGET, EAGLE3, model

if TYPE_CHECKING:
    from specdec_operator.api.v1alpha1.runtime import Backend
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModel


_HUB = {"huggingFace": {"repository": "someone/model"}}
PARALLELISM = st.fixed_dictionaries({"tensor": st.integers(1, 8), "pipeline": st.integers(1, 4)})


@st.composite
def pairs(draw: st.DrawFn) -> SpeculativeModel:
    target, draft = draw(PARALLELISM), draw(PARALLELISM)
    transfer = draw(st.sampled_from([None, "Standard", "Disabled", "Fast"]))
    t, d = (split["tensor"] * split["pipeline"] for split in (target, draft))
    apart = st.permutations(range(t + d)).map(lambda ids: (ids[:d], ids[d:]))
    sharing = st.permutations(range(max(t, d))).map(lambda ids: (ids[:d], ids[:t]))
    kinds = [st.none(), apart] if transfer == "Fast" else [st.none(), apart, sharing]
    return pair(target=target, draft=draft, transfer=transfer, devices=draw(st.one_of(*kinds)))


def pair(
    *,
    target: dict[str, int] | None = None,
    draft: dict[str, int] | None = None,
    transfer: str | None = None,
    devices: tuple[list[int], list[int]] | None = None,
) -> SpeculativeModel:
    return model(
        DRAFT_TARGET,
        target__parallelism=target or {},
        draft__parallelism=draft or {},
        placement__draftDevices=devices[0] if devices else None,
        placement__targetDevices=devices[1] if devices else None,
        speculation__draftTarget={"logitsTransfer": transfer} if transfer else {},
    )


def test_a_draft_on_one_gpu_and_a_target_on_four_are_six_processes() -> None:
    placed = place(model(DRAFT_TARGET).spec, "TensorRTEngine")

    assert (placed.of("draft").participant_ids, placed.of("target").participant_ids) == ((1,), (2, 3, 4, 5))
    assert (placed.world_size, placed.gpus, placed.orchestrator) == (6, 5, True)


def test_the_draft_takes_the_first_devices_where_none_are_declared() -> None:
    spec = model(DRAFT_TARGET, placement__draftDevices=None, placement__targetDevices=None).spec
    placed = place(spec, "TensorRTEngine")

    assert (placed.of("draft").devices, placed.of("target").devices) == ((0,), (1, 2, 3, 4))


def test_declared_devices_keep_their_order() -> None:
    spec = model(DRAFT_TARGET, placement__draftDevices=[4], placement__targetDevices=[3, 2, 1, 0]).spec

    assert place(spec, "TensorRTEngine").of("target").devices == (3, 2, 1, 0)


def test_one_engine_on_one_gpu_needs_no_mpi() -> None:
    placed = place(model(BASELINE_ENGINE).spec, "TensorRTEngine")

    assert (placed.world_size, placed.of("target").participant_ids) == (1, ())


def test_one_engine_on_several_gpus_is_a_rank_for_each() -> None:
    placed = place(model(BASELINE_ENGINE, target__parallelism__tensor=2).spec, "TensorRTEngine")

    assert (placed.world_size, placed.of("target").participant_ids, placed.orchestrator) == (2, (0, 1), False)


@pytest.mark.parametrize("spec", [EAGLE3, BASELINE])
def test_the_llm_api_starts_one_process_for_all_its_gpus(spec: dict[str, object]) -> None:
    placed = place(model(spec, target__parallelism__tensor=2).spec, "LLMAPI")

    assert (placed.world_size, placed.gpus) == (1, 2)


def test_a_role_without_gpus_of_its_own_has_no_place() -> None:
    with pytest.raises(KeyError, match="draft"):
        place(model(EAGLE3).spec, "LLMAPI").of("draft")


@pytest.mark.parametrize("backend", ["LLMAPI", "VLLM"])
def test_without_engines_a_target_in_stages_has_a_gpu_for_each_part(backend: Backend) -> None:
    placed = place(model(BASELINE, target__parallelism={"tensor": 2, "pipeline": 3}).spec, backend)

    assert (placed.world_size, placed.of("target").devices) == (1, (0, 1, 2, 3, 4, 5))


def test_an_engine_in_stages_is_a_rank_for_each_part() -> None:
    placed = place(model(BASELINE_ENGINE, target__parallelism={"tensor": 2, "pipeline": 2}).spec, "TensorRTEngine")

    assert (placed.world_size, placed.of("target").participant_ids) == (4, (0, 1, 2, 3))


def test_stages_of_a_pair_have_ranks_too() -> None:
    placed = place(pair(target={"pipeline": 2}, draft={"tensor": 2, "pipeline": 2}).spec, "TensorRTEngine")

    assert (placed.of("draft").participant_ids, placed.of("target").participant_ids) == ((1, 2, 3, 4), (5, 6))
    assert (placed.world_size, placed.gpus) == (7, 6)


def test_a_head_has_no_gpu_of_its_own() -> None:
    placed = place(model(BASELINE_ENGINE, draft={"source": _HUB}, speculation__method="Eagle").spec, "TensorRTEngine")

    assert [entry.role for entry in placed.models] == ["target"]


@pytest.mark.parametrize("transfer", ["Standard", "Disabled"])
def test_without_fast_logits_the_server_starts_its_ranks_and_names_none(transfer: str) -> None:
    placed = place(pair(target={"tensor": 4}, transfer=transfer).spec, "TensorRTEngine")

    assert (placed.world_size, placed.orchestrator, placed.spawns, placed.processes) == (1, True, True, 6)
    assert {entry.participant_ids for entry in placed.models} == {()}


def test_a_pair_with_gpus_of_its_own_sends_its_logits_fast() -> None:
    assert logits_transfer(pair().spec) == "Fast"


def test_a_pair_on_one_gpu_sends_no_logits() -> None:
    made = pair(devices=([0], [0]))
    placed = place(made.spec, "TensorRTEngine")

    assert (placed.logits_transfer, placed.shared, placed.gpus, placed.processes) == ("Disabled", True, 1, 3)


def test_a_pair_on_one_gpu_sends_its_logits_where_asked_to() -> None:
    assert logits_transfer(pair(devices=([0], [0]), transfer="Standard").spec) == "Standard"


def test_a_draft_may_lie_within_the_target_s_gpus() -> None:
    placed = place(pair(target={"tensor": 4}, devices=([2], [0, 1, 2, 3])).spec, "TensorRTEngine")

    assert (placed.of("draft").devices, placed.gpus, placed.shared) == ((2,), 4, True)


def test_only_pairs_of_engines_send_logits() -> None:
    assert place(model(BASELINE_ENGINE).spec, "TensorRTEngine").logits_transfer is None


@pytest.mark.parametrize(
    ("made", "orchestration"),
    [
        (model(BASELINE_ENGINE), "Single"),
        (model(BASELINE_ENGINE, target__parallelism={"tensor": 2}), "Leader"),
        (model(DRAFT_TARGET), "Orchestrator"),
        (model(DRAFT_TARGET, speculation__draftTarget={"logitsTransfer": "Disabled"}), "SpawningOrchestrator"),
    ],
)
def test_the_processes_find_each_other_in_one_of_four_ways(made: SpeculativeModel, orchestration: str) -> None:
    assert place(made.spec, "TensorRTEngine").orchestration == orchestration


@given(made=pairs())
def test_ranks_are_disjoint_and_complete(made: SpeculativeModel) -> None:
    placed = place(made.spec, default_backend(made.spec))
    ranks = [rank for entry in placed.models for rank in entry.participant_ids]

    assert sorted(ranks) == list(range(1, placed.world_size))


@given(made=pairs())
def test_devices_count_from_zero_without_a_gap(made: SpeculativeModel) -> None:
    placed = place(made.spec, default_backend(made.spec))
    devices = {device for entry in placed.models for device in entry.devices}

    assert sorted(devices) == list(range(placed.gpus))


@given(made=pairs())
def test_every_named_rank_has_a_device(made: SpeculativeModel) -> None:
    for entry in place(made.spec, default_backend(made.spec)).models:
        assert len(entry.participant_ids) in (0, len(entry.devices))


@given(made=pairs())
def test_every_device_of_a_model_is_another(made: SpeculativeModel) -> None:
    for entry in place(made.spec, default_backend(made.spec)).models:
        assert len(set(entry.devices)) == len(entry.devices)


@given(made=pairs())
def test_ranks_are_named_or_started_by_the_server_and_never_both(made: SpeculativeModel) -> None:
    placed = place(made.spec, default_backend(made.spec))
    named = any(entry.participant_ids for entry in placed.models)

    assert (named, placed.spawns) == (placed.logits_transfer == "Fast", placed.logits_transfer != "Fast")

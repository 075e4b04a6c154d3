from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdec_operator.api.v1alpha1.speculative_model import default_backend
from specdec_operator.planning.placement import place
from tests.unit.specs import BASELINE, BASELINE_ENGINE, DRAFT_TARGET, EAGLE3, model

if TYPE_CHECKING:
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModel

TENSOR = st.integers(1, 32)


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


@given(draft=TENSOR, target=TENSOR)
def test_ranks_are_disjoint_and_complete(draft: int, target: int) -> None:
    spec = _pair(draft, target)
    placed = place(spec.spec, default_backend(spec.spec))
    ranks = [rank for entry in placed.models for rank in entry.participant_ids]

    assert sorted(ranks) == list(range(1, placed.world_size))


@given(draft=TENSOR, target=TENSOR)
def test_devices_count_from_zero_without_a_gap(draft: int, target: int) -> None:
    spec = _pair(draft, target)
    placed = place(spec.spec, default_backend(spec.spec))
    devices = [device for entry in placed.models for device in entry.devices]

    assert sorted(devices) == list(range(draft + target)) == list(range(placed.gpus))


@given(draft=TENSOR, target=TENSOR)
def test_every_rank_has_a_device(draft: int, target: int) -> None:
    spec = _pair(draft, target)

    for placed in place(spec.spec, default_backend(spec.spec)).models:
        assert len(placed.devices) == len(placed.participant_ids)


def _pair(draft: int, target: int) -> SpeculativeModel:
    return model(
        DRAFT_TARGET,
        target__parallelism={"tensor": target},
        draft__parallelism={"tensor": draft},
        placement__draftDevices=None,
        placement__targetDevices=None,
    )

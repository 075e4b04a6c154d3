from __future__ import annotations

from typing import Any

import pytest

from specdec_operator.planning.remarks import remarks
from specdec_operator.reconcile.preparation import accepted
from tests.unit.specs import BASELINE, DRAFT_TARGET, EAGLE3, model, resolution_of

EIGHT = {"target__parallelism": {"tensor": 8}}
OWN: dict[str, Any] = {**EIGHT, "placement__draftDevices": [0], "placement__targetDevices": list(range(1, 9))}
SHARED: dict[str, Any] = {**EIGHT, "placement__draftDevices": [0], "placement__targetDevices": list(range(8))}


def test_a_draft_beside_a_target_of_eight_gpus_is_said_to_need_a_larger_node() -> None:
    (remark,) = remarks(model(DRAFT_TARGET, **OWN).spec)

    assert str(remark) == (
        "spec.placement: each pod asks for 9 GPUs, and usual nodes have no more than 8: without a larger node it stays "
        "Unschedulable. Where there is none, let the draft share a GPU with the target (draftDevices), or lower "
        "target.parallelism"
    )


@pytest.mark.parametrize(("spec", "changes"), [(DRAFT_TARGET, SHARED), (EAGLE3, EIGHT), (BASELINE, EIGHT)])
def test_eight_gpus_are_nothing_to_remark(spec: dict[str, Any], changes: dict[str, Any]) -> None:
    assert remarks(model(spec, **changes).spec) == ()


def test_a_target_of_more_than_eight_gpus_is_remarked_by_itself() -> None:
    (remark,) = remarks(model(BASELINE, target__parallelism={"tensor": 8, "pipeline": 2}).spec)

    assert remark.path == "spec.target.parallelism"


def test_slices_of_gpus_are_not_counted() -> None:
    sliced = {"resourceName": "nvidia.com/mig-1g.10gb", "product": "NVIDIA-H100-80GB-HBM3"}

    assert remarks(model(BASELINE, target__parallelism={"tensor": 16}, placement={"gpu": sliced}).spec) == ()


def test_status_says_it_beside_what_serves() -> None:
    made = model(DRAFT_TARGET, **OWN)

    assert accepted(made, resolution_of(made)).startswith("TensorRTEngine of release 26.04; spec.placement: each pod")

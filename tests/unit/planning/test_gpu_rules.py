from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from specdec_operator.planning.admission import refusals
from specdec_operator.planning.gpu_rules import gpu_refusals
from tests.unit.engine_specs import EAGLE
from tests.unit.specs import BASELINE, BASELINE_ENGINE, CONFIGURATION, EAGLE3, TABLE, model, resolution_of

if TYPE_CHECKING:
    from specdec_operator.planning.refusal import Refusal

VOLTA, TURING, AMPERE = "Tesla-V100-SXM2-32GB", "Tesla-T4", "NVIDIA-A10"


def refused(spec: dict[str, Any], product: str, **changes: Any) -> list[Refusal]:
    made = model(spec, **changes)
    return gpu_refusals(made.spec, replace(resolution_of(made), gpu_product=product))


def test_gpus_too_old_for_a_method_are_refused() -> None:
    (refusal,) = refused(EAGLE, TURING)

    assert refusal.message == (
        "Eagle engines need compute capability 8.0, Tesla-T4 has 7.5: name newer GPUs, or use another method"
    )


def test_gpus_too_old_for_a_release_are_refused_once() -> None:
    (refusal,) = refused(EAGLE, VOLTA)

    assert (refusal.reason, refusal.path, refusal.message) == (
        "GpuTooOld",
        "spec.placement.gpu.product",
        (
            "TensorRTEngine of release 26.04 runs on compute capability 7.5 and newer, Tesla-V100-SXM2-32GB has 7.0: "
            "name newer GPUs, or another backend or release"
        ),
    )


@pytest.mark.parametrize(
    ("backend", "release", "product", "taken"),
    [
        ("LLMAPI", "26.02", TURING, False),
        ("LLMAPI", "26.02", AMPERE, True),
        ("TensorRTEngine", "25.01", VOLTA, False),
        ("TensorRTEngine", "26.07", TURING, True),
        ("VLLM", "25.07", VOLTA, True),
        ("VLLM", "25.08", VOLTA, False),
        ("VLLM", "25.08", TURING, True),
        ("VLLM", "26.08", VOLTA, False),
    ],
)
def test_each_backend_of_a_release_has_its_own_floor(backend: str, release: str, product: str, *, taken: bool) -> None:
    spec = BASELINE_ENGINE if backend == "TensorRTEngine" else BASELINE

    assert (refused(spec, product, runtime={"backend": backend, "release": release}) == []) is taken


def test_a_product_that_is_not_known_is_not_judged() -> None:
    assert refused(EAGLE3, "A-GPU") == []


def test_old_gpus_are_refused_before_anything_is_fetched() -> None:
    made = model(EAGLE3, placement={"gpu": {"product": TURING}})

    assert [r.reason for r in refusals(made, table=TABLE, configuration=CONFIGURATION)] == ["GpuTooOld"]

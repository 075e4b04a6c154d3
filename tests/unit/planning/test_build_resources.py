from __future__ import annotations

from typing import Any

import pytest

from specdec_operator.planning.build_resources import BuildNeeds, build_needs
from specdec_operator.planning.engine_limits import limits
from specdec_operator.planning.engine_recipes import engine_recipe
from tests.unit.engine_specs import REDRAFTER, engine_facts
from tests.unit.specs import BASELINE_ENGINE, model, resolution_of

GIB = 1024**3
WEIGHTS = 100 * GIB


def needs(spec: dict[str, Any], *, memory: int | None = 80 * GIB, **changes: Any) -> BuildNeeds:
    made = model(spec, **changes)
    resolution, known = resolution_of(made), engine_facts(made.spec.speculation.method)
    limit = limits(made.spec, resolution, known)
    recipe = engine_recipe("target", made.spec, resolution, facts=known, limit=limit)
    return build_needs(recipe, weight_bytes=WEIGHTS, gpu_memory=memory)


def test_a_build_runs_on_one_gpu_rank_by_rank() -> None:
    assert needs(BASELINE_ENGINE, target__parallelism={"tensor": 8}).gpus == 1


@pytest.mark.parametrize(("memory", "gpus"), [(80 * GIB, 2), (141 * GIB, 1), (24 * GIB, 5), (None, 1)])
def test_a_quantizer_holds_the_whole_model(memory: int | None, gpus: int) -> None:
    assert needs(BASELINE_ENGINE, memory=memory, target__quantization={"format": "FP8"}).gpus == gpus


def test_weight_only_formats_need_no_more_gpus() -> None:
    assert needs(BASELINE_ENGINE, target__quantization={"format": "INT8WeightOnly"}).gpus == 1


def test_the_converter_holds_the_weights_twice() -> None:
    assert needs(BASELINE_ENGINE).memory_bytes == GIB + 2 * WEIGHTS


def test_the_store_holds_checkpoint_and_engine_beside_the_model() -> None:
    assert needs(BASELINE_ENGINE).scratch_bytes == 2 * WEIGHTS * 11 // 10


def test_a_smaller_format_needs_less_room() -> None:
    assert needs(BASELINE_ENGINE, target__quantization={"format": "FP8"}).scratch_bytes == 2 * 60 * GIB * 11 // 10


def test_a_drafter_s_checkpoint_lies_beside_its_base_s() -> None:
    assert needs(REDRAFTER).scratch_bytes == 3 * WEIGHTS * 11 // 10

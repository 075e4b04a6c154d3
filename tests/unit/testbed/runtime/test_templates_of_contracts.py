"""The simulator's model templates declare what upstream's do: Triton then refuses what it refuses there."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from specdec_operator.pod.model_config import inputs, variables
from specdec_operator.pod.textproto import parse
from testbed.runtime.simulator.release import TRITON_RELEASE
from tests.upstream.contracts import contract

TEMPLATES: Final = Path(__file__).parents[4] / "testbed/runtime/image/root/app/all_models/inflight_batcher_llm"


@pytest.mark.parametrize("model", ["ensemble", "preprocessing", "postprocessing", "tensorrt_llm", "tensorrt_llm_bls"])
def test_a_template_takes_no_input_or_variable_that_upstream_s_does_not(model: str) -> None:
    config = parse((TEMPLATES / model / "config.pbtxt").read_text(encoding="utf-8"))
    found = variables(config)
    rows = contract(f"engine/template_{model}.yaml").of(TRITON_RELEASE)
    taken = {name for row in rows for name in (*row["inputs"], *row["optionalInputs"])}
    asked = {name for row in rows for name in (*row["fields"], *row["parameters"], *row.get("renamed", {}).values())}

    assert set(inputs(config)) <= taken
    assert found.texts | found.fields <= asked

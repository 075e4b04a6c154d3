"""What is planned fits the templates that the simulator's image keeps where NVIDIA's keep theirs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from specdec_operator.pod.assemble import assemble
from specdec_operator.pod.model_config import parameters
from specdec_operator.pod.textproto import parse
from tests.unit.specs import ALL, BASELINE_ENGINE, EAGLE3, model, plan_of

IMAGE = Path(__file__).parents[3] / "testbed" / "runtime" / "image" / "root"
SHAPES = [
    *((name, ALL[name], {}) for name in ALL),
    ("leader", BASELINE_ENGINE, {"target__parallelism": {"tensor": 2}}),
    ("split", EAGLE3, {"target__parallelism": {"tensor": 4}}),
]


@pytest.fixture(params=SHAPES, ids=lambda shape: shape[0])
def repository(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Any]:
    """A model repository, assembled as the image would, and what was planned."""
    _, spec, changes = request.param
    plan = plan_of(model(spec, **changes))
    here = tuple(
        replace(t, candidates=tuple(f"{IMAGE}{candidate}" for candidate in t.candidates)) for t in plan.assembled.models
    )
    output = tmp_path / "repository"
    output.mkdir()
    assemble(replace(plan.assembled, output=str(output), models=here, revision="llama-1"))
    return output, plan


def test_every_variable_is_filled_or_declared_unset(repository: tuple[Path, Any]) -> None:
    directory, plan = repository

    assert {path.name for path in directory.iterdir()} == {template.name for template in plan.files.templates}


def test_the_endpoint_s_model_tells_its_revision(repository: tuple[Path, Any]) -> None:
    directory, plan = repository
    config = parse((directory / plan.files.endpoint_model / "config.pbtxt").read_text())

    assert parameters(config)["specdec_revision"] == "llama-1"


def test_no_template_is_missing_in_the_image(repository: tuple[Path, Any]) -> None:
    _, plan = repository

    for template in plan.files.templates:
        assert not template.candidates or any(
            Path(f"{IMAGE}{candidate}/config.pbtxt").is_file() for candidate in template.candidates
        )

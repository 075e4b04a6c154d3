"""Every row fits the templates of the oldest and of the newest releases, strictly."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from specdec_operator.pod.assemble import assemble
from specdec_operator.pod.errors import ProgramFailure
from specdec_operator.pod.inputs import AssembleInput
from tests.upstream.contracts import contract
from tests.vectors.engine_rows import rows

if TYPE_CHECKING:
    from tests.vectors.engine_rows import EngineRow

RELEASES: Final = ("25.01", "26.07")
MODELS: Final = ("ensemble", "preprocessing", "postprocessing", "tensorrt_llm", "tensorrt_llm_bls")
PROTO: Final = {
    "triton_backend": 'backend: "${triton_backend}"',
    "triton_max_batch_size": "max_batch_size: ${triton_max_batch_size}",
    "decoupled_mode": "model_transaction_policy { decoupled: ${decoupled_mode} }",
    "max_queue_delay_microseconds": "dynamic_batching { max_queue_delay_microseconds: ${max_queue_delay_microseconds}}",
    "max_queue_size": "dynamic_batching { default_queue_policy: { max_queue_size: ${max_queue_size} } }",
}


def write_templates(release: str, directory: Path) -> None:
    """The templates of a release, reduced to their variables, as upstream's contracts declare them."""
    for name in MODELS:
        declared = contract(f"engine/template_{name}.yaml").of(release)[-1]
        lines = [PROTO.get(field, f"input [ {{ data_type: ${{{field}}} }} ]") for field in declared["fields"]]
        texts = {**{text: text for text in declared["parameters"]}, **declared.get("renamed", {})}
        lines += [
            f'parameters: {{ key: "{key}" value: {{ string_value: "${{{text}}}" }} }}' for key, text in texts.items()
        ]
        (directory / name).mkdir(parents=True)
        (directory / name / "config.pbtxt").write_text("\n".join([f'name: "{name}"', *lines]) + "\n")


def assembled(row: EngineRow, release: str, directory: Path) -> Path:
    write_templates(release, directory / "templates")
    here = tuple(
        replace(t, candidates=tuple(f"{directory}/templates/{Path(c).name}" for c in t.candidates))
        for t in row.files.templates
    )
    output = directory / "repository"
    output.mkdir()
    assemble(AssembleInput(output=str(output), models=here, revision_model=row.files.endpoint_model))
    return output


@pytest.mark.parametrize(
    ("row", "release"),
    [
        pytest.param(row, release, id=f"{row.name}-{release}")
        for row in rows()
        for release in RELEASES
        if (row.name, release) != ("lookahead", "25.01")
    ],
)
def test_a_row_fits_the_templates_of_its_release(row: EngineRow, release: str, tmp_path: Path) -> None:
    output = assembled(row, release, tmp_path)

    assert {path.name for path in output.iterdir()} == {template.name for template in row.files.templates}


def test_what_an_old_template_would_lose_is_refused(tmp_path: Path) -> None:
    (row,) = (row for row in rows() if row.name == "lookahead")

    with pytest.raises(ProgramFailure, match=r"\$\{lookahead_ngram_size\}, .* isn't asked for by the template"):
        assembled(row, "25.01", tmp_path)

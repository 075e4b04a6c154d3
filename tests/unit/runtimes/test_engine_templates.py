"""Every row fits the templates of the oldest and of the newest releases, strictly."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from specdec_operator.api.yaml_text import read_yaml
from specdec_operator.pod.assemble import assemble
from specdec_operator.pod.errors import ProgramFailure
from specdec_operator.pod.inputs import AssembleInput
from tests.vectors import engine_rows
from tests.vectors.engine_rows import rows

if TYPE_CHECKING:
    from tests.vectors.engine_rows import EngineRow

FILE = Path(engine_rows.__file__).with_name("engine_templates.yaml")
VERSIONS: Final[dict[str, Any]] = read_yaml(FILE.read_text())
PROTO = {
    "triton_backend": 'backend: "${triton_backend}"',
    "triton_max_batch_size": "max_batch_size: ${triton_max_batch_size}",
    "decoupled_mode": "model_transaction_policy { decoupled: ${decoupled_mode} }",
    "max_queue_delay_microseconds": "dynamic_batching { max_queue_delay_microseconds: ${max_queue_delay_microseconds}}",
    "max_queue_size": "dynamic_batching { default_queue_policy: { max_queue_size: ${max_queue_size} } }",
}
NAMES = {"engine_dir": "gpt_model_path", "batching_strategy": "gpt_model_type"}


def write_templates(version: str, directory: Path) -> None:
    """The templates of a version, reduced to their variables."""
    for name, variables in VERSIONS[version].items():
        older = VERSIONS[variables["like"]][name] if "like" in variables else {}
        fields = [*older.get("fields", []), *variables.get("fields", [])]
        texts = [*older.get("texts", []), *variables.get("texts", [])]
        lines = [PROTO.get(field, f"input [ {{ data_type: ${{{field}}} }} ]") for field in fields]
        lines += [
            f'parameters: {{ key: "{NAMES.get(text, text)}" value: {{ string_value: "${{{text}}}" }} }}'
            for text in texts
        ]
        (directory / name).mkdir(parents=True)
        (directory / name / "config.pbtxt").write_text("\n".join([f'name: "{name}"', *lines]) + "\n")


def assembled(row: EngineRow, version: str, directory: Path) -> Path:
    write_templates(version, directory / "templates")
    here = tuple(
        replace(t, candidates=tuple(f"{directory}/templates/{Path(c).name}" for c in t.candidates))
        for t in row.files.templates
    )
    output = directory / "repository"
    output.mkdir()
    assemble(AssembleInput(output=str(output), models=here, revision_model=row.files.endpoint_model))
    return output


@pytest.mark.parametrize(
    ("row", "version"),
    [
        pytest.param(row, version, id=f"{row.name}-{version}")
        for row in rows()
        for version in VERSIONS
        if (row.name, version) != ("lookahead", "0.17")
    ],
)
def test_a_row_fits_the_templates_of_its_release(row: EngineRow, version: str, tmp_path: Path) -> None:
    output = assembled(row, version, tmp_path)

    assert {path.name for path in output.iterdir()} == {template.name for template in row.files.templates}


def test_what_an_old_template_would_lose_is_refused(tmp_path: Path) -> None:
    (row,) = (row for row in rows() if row.name == "lookahead")

    with pytest.raises(ProgramFailure, match=r"\$\{lookahead_ngram_size\}, .* isn't asked for by the template"):
        assembled(row, "0.17", tmp_path)

"""What the documents say of examples, methods and releases is so; what they show of a spec is accepted."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from specdec_operator.api.configuration import OperatorConfiguration
from specdec_operator.api.findings import check_document
from specdec_operator.api.v1alpha1.speculation import METHODS
from specdec_operator.api.v1alpha1.speculative_model import ENGINE_METHODS, default_backend, parse
from specdec_operator.api.yaml_text import read_yaml, read_yaml_documents
from specdec_operator.planning.admission import refusals
from specdec_operator.resources.labels import RETRY
from specdec_operator.runtimes.table import load_table
from testbed.played_releases import release_name
from testbed.runtime.image_config import PLAYED, Flavour

ROOT = Path(__file__).parents[2]
DOCUMENTS = ("README.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md"))))
YAML = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CHANGE = re.compile(r"\A# ([\w.-]+): ")
EXAMPLE_ROW = re.compile(r"^\| (\w+) \| (\w+) \| \[([\w.-]+)\]\(examples/\3\.yaml\) \|", re.MULTILINE)
REASON_ROW = re.compile(r"^\| `([A-Z][A-Za-z]+)`(?:, `([A-Z][A-Za-z]+)`)* \|", re.MULTILINE)
WHOLE = frozenset({"source", "storage"})
"""Members of a spec that hold one of several: a change names the new one alone."""


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    return {name: (ROOT / name).read_text(encoding="utf-8") for name in DOCUMENTS}


@pytest.fixture(scope="module")
def parts(texts: dict[str, str]) -> list[tuple[str, dict[str, Any]]]:
    """Parts of specs, as they are written and as they are read."""
    blocks = [block for text in texts.values() for block in YAML.findall(text)]
    read = [(block, document) for block in blocks for document in read_yaml_documents(block)]
    return [(block, document) for block, document in read if set(document) == {"spec"}]


def test_every_part_of_a_spec_says_which_example_it_changes(parts: list[tuple[str, dict[str, Any]]]) -> None:
    assert parts
    assert not [block for block, _ in parts if not CHANGE.match(block)]


def test_every_example_that_is_changed_as_shown_is_accepted(parts: list[tuple[str, dict[str, Any]]]) -> None:
    named = [(found[1], part) for block, part in parts if (found := CHANGE.match(block))]

    assert not [refused for name, part in named for refused in _refused(_changed(_example(name), part))]


def test_every_example_is_listed_with_its_method_and_backend(texts: dict[str, str]) -> None:
    told = {(name, method, backend) for method, backend, name in EXAMPLE_ROW.findall(texts["README.md"])}
    specs = {path.stem: parse(_example(path.stem)).spec for path in (ROOT / "examples").glob("*.yaml")}

    assert told == {(name, spec.speculation.method, default_backend(spec)) for name, spec in specs.items()}


def test_every_method_but_the_one_that_is_refused_has_an_example(texts: dict[str, str]) -> None:
    assert {method for method, _, _ in EXAMPLE_ROW.findall(texts["README.md"])} == {*METHODS} - {"Eagle2"}


@pytest.mark.parametrize(
    ("backend", "methods"),
    [("TensorRTEngine", {*ENGINE_METHODS}), ("LLMAPI", {*METHODS} - {*ENGINE_METHODS, "Eagle2"})],
)
def test_the_methods_that_take_a_backend_by_themselves_are_told(
    backend: str, methods: set[str], texts: dict[str, str]
) -> None:
    told = re.search(rf"^\| `{backend}` \| [^|]+ \| ([\w, ]+) \|$", texts["README.md"], re.MULTILINE)

    assert told is not None
    assert set(told[1].split(", ")) == methods


def test_the_first_and_the_last_release_are_told(texts: dict[str, str]) -> None:
    releases = load_table().releases

    assert f"from {releases[0].name} to {releases[-1].name}" in texts["README.md"]


def test_the_releases_whose_llm_api_does_not_start_are_told(texts: dict[str, str]) -> None:
    table = load_table()
    broken = [release.name for release in table.releases if release.blocking_defect("LLMAPI")]
    default = table.default("LLMAPI", "Eagle3")

    assert default is not None
    assert f"defaults to {default.name}: the stock images {broken[0]} to {broken[-1]} hold" in texts["README.md"]


def test_that_no_stock_image_reports_acceptance_is_so(texts: dict[str, str]) -> None:
    assert "**No stock image has such a row**" in texts["README.md"]
    assert not [release.name for release in load_table().releases if release.per_request_acceptance]


def test_the_image_that_is_mended_is_one_that_needs_it(texts: dict[str, str]) -> None:
    mended = re.search(r"^FROM (\S+)$", texts["docs/operations.md"], re.MULTILINE)
    broken = {release.image for release in load_table().releases if release.blocking_defect("LLMAPI")}

    assert mended is not None
    assert mended[1] in broken


def test_every_refusal_that_is_common_is_a_reason_of_the_list(texts: dict[str, str]) -> None:
    table = texts["docs/operations.md"].split("## Common refusals")[1].split("\n## ")[0]
    common = {word for row in REASON_ROW.finditer(table) for word in re.findall(r"`([A-Z][A-Za-z]+)`", row[0])}
    listed = set(re.findall(r"^\| `([A-Z][A-Za-z]+)` \|", texts["docs/conditions.md"], re.MULTILINE))

    assert common
    assert common <= listed


def test_the_releases_that_the_simulator_plays_are_told(texts: dict[str, str]) -> None:
    rows = re.findall(r"^\| `([\w.-]+-simulator)` \| ([\w-]+) \| ([\d.]+) \|", texts["docs/testbed.md"], re.MULTILINE)
    flavours = {Flavour.TENSORRT_LLM: "TensorRT-LLM", Flavour.VLLM: "vLLM"}

    assert rows == [(release_name(each.release), flavours[each.flavour], each.version) for each in PLAYED]


def test_how_a_failed_job_is_asked_for_again_is_told(texts: dict[str, str]) -> None:
    assert RETRY in texts["docs/operations.md"]


def _example(name: str) -> dict[str, Any]:
    document: dict[str, Any] = read_yaml((ROOT / "examples" / f"{name}.yaml").read_text(encoding="utf-8"))
    return document


def _changed(document: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """An object with a merge patch on it; null removes a field."""
    merged = dict(document)
    for key, value in change.items():
        before = merged.get(key)
        if isinstance(value, dict) and isinstance(before, dict) and key not in WHOLE:
            merged[key] = _changed(before, value)
        else:
            merged[key] = value
    return {key: value for key, value in merged.items() if value is not None}


def _refused(document: dict[str, Any]) -> list[str]:
    findings = [str(found) for found in check_document(document)]
    if findings:
        return findings
    found = refusals(parse(document), table=load_table(), configuration=OperatorConfiguration())
    return [str(refusal) for refusal in found]

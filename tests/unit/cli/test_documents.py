"""What `specdec validate` makes of files, directories and lists of objects."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import yaml

from specdec_operator.cli.files import LARGEST
from specdec_operator.cli.main import main
from tests.unit.cli.test_validate import DEPLOYMENT, INVALID, VALID

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "model.yaml"


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_a_list_is_each_of_its_objects(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    items = [yaml.safe_load(text) for text in (VALID, INVALID, DEPLOYMENT)]
    file.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": items}))

    assert main(["validate", str(file)]) == 1
    said = lines(capsys)
    assert said[0] == f"{file}:baseline: valid"
    assert said[1].startswith(f"{file}:broken: spec.")
    assert said[-1] == f"{file}:web: skipped: Deployment is not of specdec.dev"


def test_the_items_of_a_typed_list_take_their_type_from_it(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    item = {key: part for key, part in yaml.safe_load(VALID).items() if key not in ("apiVersion", "kind")}
    listed = {"apiVersion": "specdec.dev/v1alpha1", "kind": "SpeculativeModelList", "metadata": {}, "items": [item]}
    file.write_text(json.dumps(listed))

    assert main(["validate", str(file)]) == 0
    assert lines(capsys) == [f"{file}:baseline: valid"]


@pytest.mark.parametrize("items", ["[1]", "[[]]", "[null]", "[{kind: List, items: [a]}]"])
def test_what_is_not_an_object_in_a_list_is_an_error(
    file: Path, capsys: pytest.CaptureFixture[str], items: str
) -> None:
    file.write_text(f"kind: List\nitems: {items}\n")

    assert main(["validate", str(file)]) == 2
    assert f"{file}:2: not a Kubernetes object" in capsys.readouterr().err


@pytest.mark.parametrize("items", ["", "null", "[]"])
def test_an_empty_list_holds_no_object(file: Path, capsys: pytest.CaptureFixture[str], items: str) -> None:
    file.write_text(f"kind: List\nitems: {items}\n")

    assert main(["validate", str(file)]) == 0
    assert "holds no object" in lines(capsys)[0]


@pytest.mark.parametrize(
    "text",
    [
        "kind: [a]\napiVersion: {b: c}\n",
        "kind: List\nitems: 5\n",
        "kind: SpeculativeModel\napiVersion: specdec.dev/v1alpha1\nmetadata: [a]\nspec: b\n",
        "kind: SpeculativeModel\napiVersion: specdec.dev/v1alpha1\nmetadata: {name: [a]}\nspec: {pod: [{}]}\n",
        "kind: SpeculativeModel\napiVersion: specdec.dev/v1alpha1\nspec: {target: {source: [a]}, speculation: []}\n",
    ],
)
def test_an_object_of_any_shape_gets_findings(file: Path, text: str) -> None:
    file.write_text(text)

    assert main(["validate", str(file)]) == 1


def test_a_broken_document_hides_nothing_of_the_others(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(f"{INVALID}---\na: [\n---\n{VALID}")

    assert main(["validate", str(file)]) == 2
    said = capsys.readouterr()
    assert said.out.splitlines()[-1] == f"{file}:baseline: valid"
    assert len(said.out.splitlines()) == 3
    assert said.err.startswith(f"{file}:{len(INVALID.splitlines()) + 3}: ")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "manifests"
    (folder / "below").mkdir(parents=True)
    (folder / "a.yaml").write_text(VALID)
    (folder / "b.json").write_text(json.dumps(yaml.safe_load(VALID)))
    (folder / "below" / "c.yml").write_text(VALID)
    (folder / "README.md").write_text("# not YAML: [")
    (folder / "model.safetensors").write_bytes(b"\xff" * 100)
    return folder


def test_a_directory_stands_for_its_manifests(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "-f", str(folder)]) == 0
    assert lines(capsys) == [f"{folder}/a.yaml:baseline: valid", f"{folder}/b.json:baseline: valid"]


def test_the_directories_of_a_directory_are_read_on_request(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "-R", "-f", str(folder)]) == 0
    assert lines(capsys)[-1] == f"{folder}/below/c.yml:baseline: valid"


def test_a_directory_without_manifests_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "-f", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith(f"{tmp_path}: no file of this directory ends in .yaml")


def test_files_are_given_as_kubectl_takes_them_or_alone(file: Path, folder: Path) -> None:
    file.write_text(VALID)

    assert main(["validate", "-f", str(file), "--filename", str(folder), str(file)]) == 0


def test_a_command_line_without_a_file_says_what_to_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate"]) == 2
    assert "name what to read: a file, a directory, or - for standard input" in capsys.readouterr().err


def test_a_file_larger_than_any_manifest_is_an_error(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text("# " + "x" * LARGEST)

    assert main(["validate", str(file)]) == 2
    assert "larger than 16 MiB" in capsys.readouterr().err


def test_an_address_is_not_read_and_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "-f", "https://example.com/model.yaml"]) == 2
    assert "pipe it into `-f -`" in capsys.readouterr().err

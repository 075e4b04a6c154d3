"""The shape of the house: what would break imports, and how large things may grow."""

from __future__ import annotations

import operator
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYTHON_FOLDERS = ("operator", "testbed", "tests")
MOST_LINES = 400
VAGUE_NAMES = frozenset({"common", "helper", "helpers", "manager", "managers", "misc", "util", "utils"})


@pytest.fixture(scope="module")
def python_files() -> list[Path]:
    return [path for folder in PYTHON_FOLDERS for path in (ROOT / folder).rglob("*.py")]


def test_the_folder_operator_is_no_package() -> None:
    assert not (ROOT / "operator" / "__init__.py").exists()


def test_importing_operator_gives_the_standard_library_in_the_tests() -> None:
    assert Path(operator.__file__).parent == Path(sysconfig.get_path("stdlib"))


def test_importing_operator_gives_the_standard_library_in_the_checkout_too() -> None:
    code = "import operator; print(operator.__file__)"
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout

    assert Path(found.strip()).parent == Path(sysconfig.get_path("stdlib"))


def test_the_folder_operator_holds_one_package_and_nothing_else() -> None:
    assert [path.name for path in (ROOT / "operator").iterdir() if path.name != "__pycache__"] == ["specdec_operator"]


def test_no_test_lies_in_the_package(python_files: list[Path]) -> None:
    inside = [path for path in python_files if path.is_relative_to(ROOT / "operator")]

    assert not [path for path in inside if path.name.startswith("test_") or path.name == "conftest.py"]


def test_no_module_is_longer_than_the_limit(python_files: list[Path]) -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in python_files}

    assert not {path: length for path, length in lengths.items() if length > MOST_LINES}


def test_no_module_or_package_has_a_name_that_says_nothing(python_files: list[Path]) -> None:
    names = {path: {path.stem, *path.relative_to(ROOT).parent.parts} for path in python_files}

    assert not [path for path, parts in names.items() if parts & VAGUE_NAMES]


def test_the_pods_programs_import_no_other_room(python_files: list[Path]) -> None:
    programs = [path for path in python_files if path.is_relative_to(ROOT / "operator" / "specdec_operator" / "pod")]
    imports = [
        (path.name, line)
        for path in programs
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.startswith(("from specdec_operator", "import specdec_operator"))
    ]

    assert imports
    assert not [found for found in imports if not found[1].startswith("from specdec_operator.pod.")]

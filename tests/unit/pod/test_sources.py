"""The programs' own source, as ConfigMap data."""

from __future__ import annotations

import ast
import sys

import pytest

from specdec_operator.pod.sources import PROGRAMS, mount_items, program_files


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_a_program_is_shipped_with_all_that_it_imports(name: str) -> None:
    files = program_files(name)
    imported = {
        node.module
        for text in files.values()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("specdec_operator")
    }

    assert {f"{module}.py" for module in imported} <= set(files)


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_a_program_needs_nothing_but_the_standard_library(name: str) -> None:
    modules = {
        module.partition(".")[0]
        for text in program_files(name).values()
        for node in ast.walk(ast.parse(text))
        for module in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }

    assert modules - set(sys.stdlib_module_names) <= {"specdec_operator", "huggingface_hub"}


def test_a_program_is_mounted_as_a_package_path() -> None:
    (item,) = [item for item in mount_items(program_files("fetch")) if item.key == "specdec_operator.pod.fetch.py"]

    assert item.path == "specdec_operator/pod/fetch.py"


def test_the_entry_lies_at_the_top_so_that_python_runs_the_directory() -> None:
    assert "__main__.py" in [item.path for item in mount_items(program_files("fetch"))]


def test_programs_share_the_modules_that_they_import() -> None:
    together = program_files("fetch", "check")

    assert together == {**program_files("fetch"), **program_files("check")}


def test_all_programs_fit_into_a_config_map() -> None:
    assert sum(len(text.encode()) for text in program_files(*PROGRAMS).values()) < 200_000


def test_an_unknown_program_is_refused() -> None:
    with pytest.raises(ValueError, match="no such program: fetsh"):
        program_files("fetsh")

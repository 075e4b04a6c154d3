from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from specdec_operator.api.generate import main

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).parents[3]


def arguments(directory: Path, *more: str) -> list[str]:
    return [f"--output={directory / 'crds'}", f"--reference={directory / 'docs' / 'api.md'}", *more]


def test_the_files_in_the_repository_are_current() -> None:
    assert main(["--check", *arguments(ROOT)]) == 0


def test_what_was_written_is_current(tmp_path: Path) -> None:
    main(arguments(tmp_path))

    assert main(arguments(tmp_path, "--check")) == 0


def test_both_kinds_and_the_reference_are_written(tmp_path: Path) -> None:
    main(arguments(tmp_path))

    assert sorted(path.name for path in tmp_path.rglob("*.*") if path.is_file()) == [
        "api.md",
        "specdec.dev_modelartifacts.yaml",
        "specdec.dev_speculativemodels.yaml",
    ]


def test_a_missing_file_is_not_current(tmp_path: Path) -> None:
    assert main(arguments(tmp_path, "--check")) == 1


def test_the_difference_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(arguments(tmp_path))
    reference = tmp_path / "docs" / "api.md"
    reference.write_text(reference.read_text() + "typed by hand\n")
    main(arguments(tmp_path, "--check"))

    assert "-typed by hand" in capsys.readouterr().err


def test_the_check_writes_nothing(tmp_path: Path) -> None:
    main(arguments(tmp_path, "--check"))

    assert list(tmp_path.iterdir()) == []

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from testbed.uv import find_uv

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UV", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setattr("sys.executable", str(tmp_path / "venv" / "python"))


def program(file: Path) -> str:
    file.parent.mkdir()
    file.touch(0o755)
    return str(file)


def test_without_any_uv_there_is_none() -> None:
    assert find_uv() is None


def test_the_uv_on_path_is_found(tmp_path: Path) -> None:
    on_path = program(tmp_path / "path" / "uv")
    assert find_uv() == on_path


def test_the_uv_beside_this_python_comes_before_that_on_path(tmp_path: Path) -> None:
    program(tmp_path / "path" / "uv")
    beside = program(tmp_path / "venv" / "uv")
    assert find_uv() == beside


def test_the_uv_that_runs_this_program_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "venv" / "uv")
    monkeypatch.setenv("UV", "/somewhere/uv")
    assert find_uv() == "/somewhere/uv"

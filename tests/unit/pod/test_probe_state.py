"""What a probe remembers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specdec_operator.pod.probe_state import FIRST_PROCESS, read_state, write_state

if TYPE_CHECKING:
    from pathlib import Path


def stat(path: Path, start: int) -> Path:
    path.write_text(f"1 (triton (server)) S {' '.join(['0'] * 18)} {start} 0 0\n")
    return path


def test_a_state_is_read_back(tmp_path: Path) -> None:
    write_state(tmp_path / "new/state", {"answered": True})

    assert read_state(tmp_path / "new/state") == {"answered": True}


def test_a_restarted_container_remembers_nothing(tmp_path: Path) -> None:
    write_state(tmp_path / "state", {"answered": True}, first_process=stat(tmp_path / "one", 100))

    assert read_state(tmp_path / "state", first_process=stat(tmp_path / "one", 100)) == {"answered": True}
    assert read_state(tmp_path / "state", first_process=stat(tmp_path / "one", 200)) == {}


def test_the_start_time_is_the_one_that_the_kernel_tells(tmp_path: Path) -> None:
    behind_the_name = FIRST_PROCESS.read_text().rpartition(")")[2].split()
    write_state(tmp_path / "state", {})

    assert f'"{behind_the_name[19]}"' in (tmp_path / "state").read_text()


def test_a_broken_state_is_none(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("{")

    assert read_state(tmp_path / "state") == {}

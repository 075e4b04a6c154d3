from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from testbed.dev.reload import Reloader, keep_reloading, syntax_error
from testbed.operator.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection
    from pathlib import Path


@dataclass
class Process:
    """A process that runs nothing."""

    did: list[str] = field(default_factory=list)
    exit_code: int | None = None
    stops: bool = True

    def start(self) -> None:
        self.exit_code = None
        self.did.append("start")

    def stop(self) -> int | None:
        self.did.append("stop")
        if not self.stops:
            raise OperatorError("it did not end after SIGTERM")
        return 0


@dataclass
class Desk:
    """A reloader, its process and what was said."""

    process: Process = field(default_factory=Process)
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.reloader = Reloader(self.process, say=self.said.append)
        self.reloader.start()


@pytest.fixture
def desk() -> Desk:
    return Desk()


def code(folder: Path, text: str, *, name: str = "queue.py") -> Path:
    file = folder / name
    file.write_text(text)
    return file


def test_a_changed_file_restarts_the_process(desk: Desk, tmp_path: Path) -> None:
    desk.reloader.changed([code(tmp_path, "x = 1")])
    assert desk.process.did == ["start", "stop", "start"]
    assert desk.said == ["queue.py changed: restarting the operator"]


def test_a_syntax_error_leaves_the_process_running_and_is_told_with_its_place(desk: Desk, tmp_path: Path) -> None:
    broken = code(tmp_path, "x = 1\ndef f(:\n")
    desk.reloader.changed([broken])
    assert desk.process.did == ["start"]
    assert desk.said[0].startswith(f"{broken}:2: ")


def test_a_mended_syntax_error_restarts_the_process(desk: Desk, tmp_path: Path) -> None:
    desk.reloader.changed([code(tmp_path, "def f(:\n")])
    desk.reloader.changed([code(tmp_path, "def f(): ...\n")])
    assert desk.process.did == ["start", "stop", "start"]


def test_an_edit_of_another_file_does_not_start_what_is_still_broken(desk: Desk, tmp_path: Path) -> None:
    desk.reloader.changed([code(tmp_path, "def f(:\n")])
    desk.reloader.changed([code(tmp_path, "y = 2", name="other.py")])
    assert desk.process.did == ["start"]


def test_a_broken_file_that_is_removed_is_in_nobodys_way(desk: Desk, tmp_path: Path) -> None:
    broken = code(tmp_path, "def f(:\n")
    desk.reloader.changed([broken])
    broken.unlink()
    desk.reloader.changed([broken])
    assert desk.process.did == ["start", "stop", "start"]


def test_a_process_that_had_to_be_killed_is_told_and_starts_again(desk: Desk, tmp_path: Path) -> None:
    desk.process.stops = False
    desk.reloader.changed([code(tmp_path, "x = 1")])
    assert desk.said[-1] == "it did not end after SIGTERM"
    assert desk.process.did[-1] == "start"


def test_a_process_that_ended_by_itself_is_told_once(desk: Desk) -> None:
    desk.process.exit_code = 1
    desk.reloader.look()
    desk.reloader.look()
    assert desk.said == ["the operator ended with code 1; it starts again at the next edit"]


def test_a_process_that_ends_a_second_time_is_told_again(desk: Desk, tmp_path: Path) -> None:
    desk.process.exit_code = 1
    desk.reloader.look()
    desk.reloader.changed([code(tmp_path, "x = 1")])
    desk.process.exit_code = 1
    desk.reloader.look()
    assert len([line for line in desk.said if "ended" in line]) == 2


def test_files_that_are_no_python_have_no_syntax(tmp_path: Path) -> None:
    assert syntax_error(code(tmp_path, "{{ unfinished", name="job.yaml.j2")) == ""


async def test_the_log_is_shown_whether_or_not_anything_changed(tmp_path: Path) -> None:
    process, shown = Process(), list[str]()
    edited = code(tmp_path, "x = 1")

    async def changes() -> AsyncIterator[Collection[Path]]:
        for files in ([], [edited], []):
            yield files

    reloader = Reloader(process, say=shown.append)
    await keep_reloading(reloader, changes(), show_log=lambda: shown.append("log"))
    assert process.did == ["start", "stop", "start"]
    assert shown == ["log", "queue.py changed: restarting the operator", "log", "log"]

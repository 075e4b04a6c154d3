from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from testbed.cluster.errors import NotReadyError, ProgramError
from testbed.cluster.processes import (
    ProcessIdentity,
    Program,
    Programs,
    go_settings,
    kill,
    log_tail,
    processes_of,
    wait_until,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Programs]:
    running = Programs(tmp_path)
    yield running
    running.stop()


def shell(script: str, *, name: str = "example") -> Program:
    return Program(name=name, argv=("sh", "-c", script))


def ended(programs: Programs) -> bool:
    try:
        programs.check()
    except ProgramError:
        return True
    return False


def test_output_goes_to_the_programs_log(programs: Programs, tmp_path: Path) -> None:
    programs.start(shell("echo to stdout; echo to stderr >&2"))
    wait_until(lambda: ended(programs), what="the end", seconds=5)
    assert log_tail(tmp_path / "logs" / "example.log") == "to stdout\nto stderr"


def test_an_early_end_is_told_with_code_and_log(programs: Programs) -> None:
    programs.start(shell("echo address already in use; exit 7"))
    with pytest.raises(ProgramError, match=r"(?s)example ended with code 7.*address already in use"):
        wait_until(lambda: False, what="example", seconds=5, programs=programs)


def test_a_program_that_is_not_there_is_told(programs: Programs) -> None:
    with pytest.raises(ProgramError, match="absent could not be started"):
        programs.start(Program(name="absent", argv=("/nonexistent/program",)))


def test_waiting_ends_at_its_deadline() -> None:
    with pytest.raises(NotReadyError, match="the moon: not within 0 s"):
        wait_until(lambda: False, what="the moon", seconds=0.1)


def test_a_program_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    programs = Programs(tmp_path)
    programs.start(shell("trap '' TERM; echo deaf; while :; do sleep 0.1; done"))
    wait_until(lambda: log_tail(tmp_path / "logs" / "example.log") == "deaf", what="the trap", seconds=5)
    programs.stop()
    # The shell's own child needs a moment to die.
    wait_until(lambda: processes_of(tmp_path) == (), what="the end of its child", seconds=5)


def test_programs_stop_side_by_side(tmp_path: Path) -> None:
    programs = Programs(tmp_path)
    for name in ("first", "second"):
        programs.start(shell("exec sleep 30", name=name))
    programs.stop()
    assert processes_of(tmp_path) == ()


def test_a_grandchild_in_its_own_session_is_found(programs: Programs, tmp_path: Path) -> None:
    programs.start(shell("setsid sleep 30 & exit"))
    wait_until(lambda: ended(programs), what="the parent's end", seconds=5)
    # While a process becomes another program, it has no environment.
    wait_until(lambda: processes_of(tmp_path) != (), what="the grandchild's program", seconds=5)
    grandchildren = processes_of(tmp_path)
    kill(grandchildren)
    assert len(grandchildren) == 1


def test_processes_of_another_cluster_are_not_found(programs: Programs, tmp_path: Path) -> None:
    programs.start(shell("sleep 30"))
    assert processes_of(tmp_path / "other") == ()


def test_a_process_is_told_from_a_later_one_with_its_id() -> None:
    identity = ProcessIdentity.of(os.getpid())
    assert identity is not None
    assert not ProcessIdentity(pid=identity.pid, start_ticks=identity.start_ticks - 1).alive()


def test_a_process_that_nobody_has_is_not_alive() -> None:
    assert not ProcessIdentity(pid=2**22 + 1, start_ticks=1).alive()


def test_a_later_process_with_the_same_id_is_not_killed(programs: Programs, tmp_path: Path) -> None:
    pid = programs.start(shell("sleep 30"))
    kill([ProcessIdentity(pid=pid, start_ticks=1)])
    time.sleep(0.1)
    assert processes_of(tmp_path)


@pytest.mark.parametrize(("processors", "used"), [(1, "1"), (2, "1"), (3, "1"), (8, "4")])
def test_programs_run_on_half_of_the_processors(processors: int, used: str) -> None:
    assert go_settings(processors)["GOMAXPROCS"] == used

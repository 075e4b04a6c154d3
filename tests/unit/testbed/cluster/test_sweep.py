from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from testbed.cluster.processes import Program, Programs, processes_of
from testbed.cluster.progress import SilentProgress
from testbed.cluster.state import ClusterRecord, this_process
from testbed.cluster.sweep import sweep_dead

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def living(tmp_path: Path) -> ClusterRecord:
    directory = tmp_path / "a"
    directory.mkdir()
    record = ClusterRecord(name="a", directory=directory, owner=this_process())
    record.write()
    return record


@pytest.fixture
def dead(living: ClusterRecord) -> ClusterRecord:
    record = replace(living, owner=replace(living.owner, start_ticks=1))
    record.write()
    return record


def test_a_cluster_whose_owner_lives_is_left_alone(living: ClusterRecord, tmp_path: Path) -> None:
    sweep_dead(tmp_path, progress=SilentProgress())
    assert ClusterRecord.read(living.directory) == living


def test_a_cluster_whose_owner_is_dead_loses_its_processes(dead: ClusterRecord, tmp_path: Path) -> None:
    programs = Programs(dead.directory)
    programs.start(Program(name="sleeper", argv=("sleep", "60")))
    sweep_dead(tmp_path, progress=SilentProgress())
    assert processes_of(dead.directory) == ()
    programs.stop()


def test_a_cluster_whose_owner_is_dead_loses_its_directory(dead: ClusterRecord, tmp_path: Path) -> None:
    sweep_dead(tmp_path, progress=SilentProgress())
    assert not dead.directory.exists()


def test_a_directory_that_was_never_registered_goes(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    sweep_dead(tmp_path, progress=SilentProgress())
    assert not (tmp_path / "b").exists()


def test_a_machine_that_never_ran_a_cluster_has_nothing_to_sweep(tmp_path: Path) -> None:
    sweep_dead(tmp_path / "none", progress=SilentProgress())
    assert not (tmp_path / "none").exists()

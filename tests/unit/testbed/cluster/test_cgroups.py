from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from testbed.cluster import cgroups

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def version_1(tmp_path: Path) -> Path:
    for controller in ("cpuset", "memory"):
        (tmp_path / controller).mkdir()
        (tmp_path / controller / "cgroup.procs").touch()
    (tmp_path / "cpu").symlink_to("memory")
    return tmp_path


@pytest.fixture
def version_2(tmp_path: Path) -> Path:
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io memory pids rdma\n")
    (tmp_path / "cgroup.procs").touch()
    return tmp_path


def test_version_1_has_a_group_in_every_hierarchy(version_1: Path) -> None:
    cgroups.create("pods", root=version_1)
    assert (version_1 / "cpuset" / "pods").is_dir()
    assert (version_1 / "memory" / "pods").is_dir()


def test_version_2_has_one_group(version_2: Path) -> None:
    cgroups.create("pods", root=version_2)
    assert [path.name for path in version_2.iterdir() if path.is_dir()] == ["pods"]


def test_version_2_hands_the_controllers_down_that_it_has(version_2: Path) -> None:
    cgroups.create("pods", root=version_2)
    assert (version_2 / "cgroup.subtree_control").read_text() == "+cpu +cpuset +io +memory +pids"


@pytest.mark.parametrize(("file", "weight"), [("cpu.shares", "4096"), ("cpu.weight", "400")])
def test_pods_outweigh_the_work_of_a_busy_machine(version_1: Path, file: str, weight: str) -> None:
    group = version_1 / "memory" / "pods"
    group.mkdir()
    (group / file).touch()
    cgroups.create("pods", root=version_1)
    assert (group / file).read_text() == weight


def test_a_group_is_removed_with_all_below_it(version_1: Path) -> None:
    (version_1 / "memory" / "pods" / "burstable" / "one").mkdir(parents=True)
    cgroups.remove("pods", root=version_1)
    assert not (version_1 / "memory" / "pods").exists()


def test_removing_a_group_that_is_not_there_does_nothing(version_1: Path) -> None:
    cgroups.remove("pods", root=version_1)
    assert not (version_1 / "memory" / "pods").exists()

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from testbed.cluster.errors import TestbedError
from testbed.cluster.processes import ProcessIdentity
from testbed.cluster.state import ClusterRecord, NodeRecord, this_process

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("node", [None, NodeRecord(link="l", cgroup="c")])
def test_a_record_is_read_as_it_was_written(tmp_path: Path, node: NodeRecord | None) -> None:
    record = ClusterRecord(name="a", directory=tmp_path, owner=ProcessIdentity(pid=1, start_ticks=2), node=node)
    record.write()
    assert ClusterRecord.read(tmp_path) == record


def test_a_directory_without_a_record_has_none(tmp_path: Path) -> None:
    assert ClusterRecord.read(tmp_path) is None


@pytest.mark.parametrize("content", ["", "{", "[]", '{"name": "a"}'])
def test_a_record_that_cannot_be_read_names_its_file(tmp_path: Path, content: str) -> None:
    (tmp_path / "state.json").write_text(content)
    with pytest.raises(TestbedError, match=r"state\.json can't be read"):
        ClusterRecord.read(tmp_path)


def test_clusters_of_two_directories_share_no_name_in_the_system(tmp_path: Path) -> None:
    assert NodeRecord.of(tmp_path / "a") != NodeRecord.of(tmp_path / "b")


def test_a_link_and_its_other_end_fit_the_kernels_limit(tmp_path: Path) -> None:
    assert len(NodeRecord.of(tmp_path).link + "n") <= 15


def test_this_process_is_alive() -> None:
    assert this_process().alive()

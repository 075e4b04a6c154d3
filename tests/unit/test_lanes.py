"""The lanes of `make test` name tests that there are."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.conftest import LANES, LaneScheduling, pytest_collection_modifyitems

TESTS = Path(__file__).parents[1]
NODE_IDS = [
    "tests/unit/test_lanes.py::test_b",
    "tests/integration/test_cluster_api.py::test_a",
    "tests/e2e/test_refusals.py::test_a",
    "tests/unit/test_lanes.py::test_a",
]
STARTS = [start for starts in LANES.values() for start in starts]


@pytest.mark.parametrize("start", STARTS)
def test_what_has_a_place_in_a_lane_exists(start: str) -> None:
    assert (TESTS / start).exists()


def test_no_place_is_given_twice() -> None:
    assert len(set(STARTS)) == len(STARTS)


def test_workers_begin_with_the_lanes() -> None:
    assert ordered(SimpleNamespace(workerinput={})) == [NODE_IDS[1], NODE_IDS[2], NODE_IDS[0], NODE_IDS[3]]


def test_one_process_ends_with_the_lanes() -> None:
    assert ordered(SimpleNamespace()) == [NODE_IDS[0], NODE_IDS[3], NODE_IDS[1], NODE_IDS[2]]


def ordered(config: Any) -> list[str]:
    items: list[Any] = [SimpleNamespace(nodeid=nodeid) for nodeid in NODE_IDS]
    pytest_collection_modifyitems(config, items)
    return [item.nodeid for item in items]


def test_a_lane_or_a_module_is_given_out_as_a_whole() -> None:
    scheduling = LaneScheduling.__new__(LaneScheduling)
    assert [scheduling._split_scope(nodeid) for nodeid in NODE_IDS] == [
        "tests/unit/test_lanes.py",
        "control plane",
        "real node",
        "tests/unit/test_lanes.py",
    ]

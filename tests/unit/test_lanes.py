"""The lanes of `make test` name tests that there are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import LANES

TESTS = Path(__file__).parents[1]
STARTS = [start for starts in LANES.values() for start in starts]


@pytest.mark.parametrize("start", STARTS)
def test_what_has_a_place_in_a_lane_exists(start: str) -> None:
    assert (TESTS / start).exists()


def test_no_place_is_given_twice() -> None:
    assert len(set(STARTS)) == len(STARTS)

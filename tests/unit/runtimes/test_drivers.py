"""The drivers of CUDA versions."""

from __future__ import annotations

import pytest

from specdec_operator.runtimes.drivers import cuda_drivers, drivers_of


@pytest.mark.parametrize(
    ("cuda", "known"),
    [
        ("12.8", "12.8"),
        ("12.8.1", "12.8"),
        ("12.10.0", "12.9"),
        ("13.0.2", "13.0"),
        ("13.9", "13.4"),
        ("13.1.1", "13.1"),
    ],
)
def test_a_cuda_version_has_the_drivers_of_the_newest_listed_one_of_its_family(cuda: str, known: str) -> None:
    found = drivers_of(cuda)

    assert found is not None
    assert found.version == known


@pytest.mark.parametrize("cuda", ["12.4.1", "11.8", "14.0", ""])
def test_nothing_is_known_of_a_cuda_version_older_than_the_listed_ones_or_of_another_family(cuda: str) -> None:
    assert drivers_of(cuda) is None


def test_versions_are_listed_in_order() -> None:
    versions = [tuple(int(part) for part in known.version.split(".")) for known in cuda_drivers()]

    assert versions == sorted(set(versions))


def test_a_branch_is_listed_once() -> None:
    for known in cuda_drivers():
        branches = [oldest.partition(".")[0] for oldest in known.data_center]
        assert len(branches) == len(set(branches))

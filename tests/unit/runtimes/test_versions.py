from __future__ import annotations

import pytest

from specdec_operator.runtimes.versions import at_least


@pytest.mark.parametrize(
    ("version", "wanted", "expected"),
    [
        ("0.10.2", "0.9.2", True),
        ("0.9.2", "0.10", False),
        ("0.9.0rc1", "0.9", True),
        ("0.27.1+b1082979.nv26.8", "0.27.1", True),
        ("0.6.3.post1", "0.6.3", True),
        ("1.2.0rc8", "1.2.1", False),
        ("1", "1.0.0", True),
    ],
)
def test_versions_are_compared_by_their_numbers(version: str, wanted: str, *, expected: bool) -> None:
    assert at_least(version, wanted) is expected

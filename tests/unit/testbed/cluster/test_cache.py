from __future__ import annotations

from pathlib import Path

import pytest

from testbed.cluster.cache import cache_directory, clusters_directory


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"SPECDEC_CACHE": "/a", "XDG_CACHE_HOME": "/b"}, Path("/a")),
        ({"XDG_CACHE_HOME": "/b"}, Path("/b/specdec")),
        ({"SPECDEC_CACHE": ""}, Path.home() / ".cache" / "specdec"),
    ],
)
def test_the_cache_is_where_the_environment_says(environment: dict[str, str], expected: Path) -> None:
    assert cache_directory(environment) == expected


def test_clusters_live_in_the_cache() -> None:
    assert clusters_directory({"SPECDEC_CACHE": "/a"}) == Path("/a/clusters")

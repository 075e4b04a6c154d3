from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from testbed.cluster.containerd import CAP_SYS_RESOURCE, Containerd, has_capability

CONTAINERD = Containerd(
    directory=Path("/c/containerd"),
    program=Path("/b/containerd"),
    ctr=Path("/b/ctr"),
    runc=Path("/usr/sbin/runc"),
    plugins=Path("/usr/lib/cni"),
    pause_image="example/pause:1",
)


@pytest.mark.parametrize(("mask", "expected"), [("000001ffffffffff", True), ("000001fffeffffff", False)])
def test_a_capability_is_read_from_the_effective_set(*, mask: str, expected: bool) -> None:
    status = f"CapPrm:\t000001ffffffffff\nCapEff:\t{mask}\nCapBnd:\t000001ffffffffff\n"
    assert has_capability(CAP_SYS_RESOURCE, status=status) is expected


@pytest.mark.parametrize("allowed", [True, False])
def test_scores_are_restricted_where_root_may_not_lower_them(*, allowed: bool) -> None:
    plugins = tomllib.loads(CONTAINERD.configuration(lower_oom_scores=allowed))["plugins"]
    assert plugins["io.containerd.cri.v1.runtime"]["restrict_oom_score_adj"] is not allowed


def test_sandboxes_use_the_image_that_was_imported() -> None:
    plugins = tomllib.loads(CONTAINERD.configuration(lower_oom_scores=True))["plugins"]
    assert plugins["io.containerd.cri.v1.images"]["pinned_images"]["sandbox"] == "example/pause:1"

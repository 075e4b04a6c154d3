from __future__ import annotations

from pathlib import Path

import pytest

from testbed.cluster.volumes import storage_class, volume_names, volume_object


def test_there_are_as_many_volumes_of_each_access_mode() -> None:
    assert volume_names(2) == ["rwo-0", "rwo-1", "rwx-0", "rwx-1"]


@pytest.mark.parametrize(("name", "mode"), [("rwo-3", "ReadWriteOnce"), ("rwx-0", "ReadWriteMany")])
def test_a_volume_offers_the_one_access_mode_of_its_name(name: str, mode: str) -> None:
    volume = volume_object(name, path=Path("/v"), node="n")
    assert volume["spec"]["accessModes"] == [mode]


def test_claims_that_name_no_class_get_the_testbeds() -> None:
    annotations = storage_class()["metadata"]["annotations"]
    assert annotations == {"storageclass.kubernetes.io/is-default-class": "true"}

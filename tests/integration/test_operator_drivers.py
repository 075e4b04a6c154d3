"""Drivers that GPU nodes tell by their labels: what no node runs is refused before anything is fetched."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from specdec_operator.cluster.resources import MODEL_ARTIFACTS
from tests.integration.scene import baseline, condition

if TYPE_CHECKING:
    from tests.integration.scene import Stage

pytestmark = [pytest.mark.controlplane, pytest.mark.asyncio(loop_scope="module")]

DRIVER = "580.105.08"
"""That of all nodes."""


async def test_a_release_that_no_node_s_driver_runs_is_refused_before_anything_is_fetched(operated: Stage) -> None:
    scene = await operated.scene("drivers-old")
    await scene.apply("new", baseline(runtime={"backend": "VLLM", "release": "26.08", "minimumDriver": "615.61"}))

    model = await scene.until_stalled("new", "DriverTooOld")

    said = condition(model, "Accepted")
    assert f"driver {DRIVER} is too old: NVIDIA-H100-80GB-HBM3, a data-centre GPU, needs 615.61" in said["message"]
    assert await scene.names(MODEL_ARTIFACTS) == []


async def test_the_default_release_is_one_that_the_nodes_drivers_run(operated: Stage) -> None:
    scene = await operated.scene("drivers-default")
    await scene.apply("usual", baseline(runtime={"backend": "VLLM"}))

    model = await scene.until_ready("usual")

    (pin,) = (pin for pin in model["status"]["pins"] if pin["name"] == "runtime.release")
    assert f"run by driver {DRIVER} of the labels of 24 GPU nodes" in pin["reason"]

"""Engines that are built in other ways than a plain one: quantized with texts of a hub, or by somebody else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from specdec_operator.cluster.resources import JOBS, MODEL_ARTIFACTS
from testbed.operator.job_player import fails
from tests.integration.scene import JsonObject, Scene, Stage, condition, configuration, engine

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = [pytest.mark.controlplane, pytest.mark.asyncio(loop_scope="module")]

CONFIGURATION = configuration()
PRECISION = {
    "format": "FP8",
    "calibration": {"source": {"huggingFace": {"repository": "abisee/cnn_dailymail"}}, "samples": 64},
}


def prebuilt(directory: str) -> JsonObject:
    return engine(engine={"prebuilt": {"target": {"claimName": "specdec-store", "subPath": directory}}})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene(operated: Stage) -> AsyncIterator[Scene]:
    made = await operated.scene("engines")
    quantized = engine()
    quantized["target"] = {**quantized["target"], "quantization": PRECISION}
    await made.apply("quantized", quantized)
    await made.apply("prebuilt", prebuilt("engines-of-mine/llama"))
    yield made


async def test_a_quantizer_s_texts_are_fetched_before_its_engine_is_built(scene: Scene) -> None:
    await scene.until_ready("quantized")
    texts = await scene.artifact("target-calibration", "quantized")
    built = await scene.artifact("target-engine", "quantized")

    assert texts["spec"]["fetch"]["content"] == "DataSet"
    assert built["spec"]["build"]["calibration"]["subPath"] == texts["spec"]["fetch"]["directory"]


async def test_a_data_set_s_branch_is_pinned_to_the_commit_that_was_fetched(scene: Scene) -> None:
    model = await scene.until_ready("quantized")
    texts = await scene.artifact("target-calibration", "quantized")
    pins = {pin["name"]: pin["value"] for pin in model["status"]["pins"]}

    assert pins["target.quantization.calibration.source.huggingFace.revision"] == texts["status"]["dataSet"]["commit"]


async def test_a_quantized_engine_s_job_reads_its_texts(scene: Scene) -> None:
    await scene.until_ready("quantized")
    built = await scene.artifact("target-engine", "quantized")
    (job,) = [job for job in await scene.objects(JOBS) if job["metadata"]["name"].startswith(built["metadata"]["name"])]
    (program,) = job["spec"]["template"]["spec"]["containers"]

    assert "/calibration/cnn_dailymail" in {mount["mountPath"] for mount in program["volumeMounts"]}


async def test_a_prebuilt_engine_is_served_without_a_build(scene: Scene) -> None:
    model = await scene.until_ready("prebuilt")
    inspected = await scene.artifact("target-engine", "prebuilt")

    assert "build" not in inspected["spec"]
    assert condition(model, "EnginesReady")["message"] == "1 engine(s) inspected; repository assembled"


async def test_a_prebuilt_engine_is_mounted_from_its_claim(scene: Scene) -> None:
    await scene.until_ready("prebuilt")
    (pod,) = await scene.serving_pods("prebuilt")
    mounts = {mount["mountPath"]: mount for mount in pod["spec"]["containers"][0]["volumeMounts"]}

    assert mounts["/engines/target"]["subPath"] == "engines-of-mine/llama"


async def test_a_prebuilt_engine_that_is_another_one_is_refused_with_what_to_do(scene: Scene) -> None:
    scene.script.prebuilt = [fails("EngineMismatch", "/engine: it takes 4 requests at once. Build it anew")]
    await scene.apply("other", prebuilt("engines-of-mine/other"))
    model = await scene.until_stalled("other", "EngineMismatch")

    assert "it takes 4 requests at once" in condition(model, "EnginesReady")["message"]


async def test_no_artifact_of_a_prebuilt_engine_asks_for_a_gpu(scene: Scene) -> None:
    await scene.until_ready("prebuilt")
    artifacts = [a for a in await scene.objects(MODEL_ARTIFACTS) if "prebuilt" in a["spec"]]

    assert artifacts
    assert all("gpu" not in artifact["spec"] for artifact in artifacts)

"""A store's claim that is deleted while it is in use goes once its pods stop; what it held is made again in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from specdec_operator.cluster.resources import MODEL_ARTIFACTS, PODS
from specdec_operator.cluster.resources import PERSISTENT_VOLUME_CLAIMS as CLAIMS
from tests.integration.scene import JsonObject, Scene, Stage, condition, engine

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = [pytest.mark.controlplane, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene(operated: Stage) -> AsyncIterator[Scene]:
    made = await operated.scene("claims", volumes=2)
    await made.apply("built", engine())
    await made.until_ready("built")
    yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def first(scene: Scene) -> JsonObject:
    """The claim that was deleted while a pod serves."""
    (claim,) = await scene.objects(CLAIMS)
    await scene.delete(CLAIMS, claim["metadata"]["name"])
    await scene.patch(
        PODS, (await scene.serving_pods("built"))[0]["metadata"]["name"], {"metadata": {"labels": {"a": "b"}}}
    )
    return claim


async def test_a_claim_that_is_being_deleted_is_named_with_the_remedy(scene: Scene, first: JsonObject) -> None:
    await touch(scene)
    model = await scene.until_condition("built", "ModelsCached", "False", reason="ClaimLeaving")
    said = condition(model, "ModelsCached")["message"]
    assert first["metadata"]["name"] in said
    assert "spec.suspend" in said
    assert "GPU" not in said


async def test_what_serves_goes_on_while_its_claim_is_being_deleted(scene: Scene, first: JsonObject) -> None:
    model = await scene.until_condition("built", "ModelsCached", "False", reason="ClaimLeaving")
    assert (condition(model, "Available")["status"], model["status"]["readyReplicas"]) == ("True", 1)
    assert "deletionTimestamp" in (await scene.get(CLAIMS, first["metadata"]["name"]))["metadata"]


async def test_finished_jobs_keep_no_claim_and_no_engine_is_built_before_its_model_is_back(
    scene: Scene, first: JsonObject
) -> None:
    scene.script.held = {"models"}
    (built,) = [a for a in await scene.objects(MODEL_ARTIFACTS) if a["spec"]["type"] == "Engine"]
    await scene.apply("built", engine(suspend=True))
    await scene.until_replaced(CLAIMS, first)
    # Whatever looks at the engine first, it must not build from an empty store.
    await scene.patch(MODEL_ARTIFACTS, built["metadata"]["name"], {"metadata": {"annotations": {"a": "b"}}})

    async def waits() -> bool:
        status = (await scene.get(MODEL_ARTIFACTS, built["metadata"]["name"]))["status"]
        return bool(status["reason"] == "ModelAwaited")

    await scene.until("the build waits", waits, seen="built")
    assert await scene.jobs("engine-") == []
    scene.script.held = set()
    await scene.apply("built", engine())
    await scene.until_ready("built")
    assert len(await scene.jobs("engine-")) == 1


async def touch(scene: Scene) -> None:
    """Have the model looked at now rather than at the next resync."""
    await scene.apply("built", engine(), annotations={"example.com/touched": "yes"})

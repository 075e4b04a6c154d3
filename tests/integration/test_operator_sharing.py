"""Models that need the same engine share it; the last one takes it along."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from specdec_operator.cluster.resources import JOBS, MODEL_ARTIFACTS, SPECULATIVE_MODELS
from tests.integration.scene import Scene, Stage, engine

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = [pytest.mark.controlplane, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene(operated: Stage) -> AsyncIterator[Scene]:
    made = await operated.scene("sharing")
    for name in ("one", "two"):
        await made.apply(name, engine())
    for name in ("one", "two"):
        await made.until_ready(name)
    yield made


async def owners(scene: Scene, artifact: str) -> list[str]:
    document = await scene.get(MODEL_ARTIFACTS, artifact)
    return sorted(owner["name"] for owner in document["metadata"]["ownerReferences"])


async def engine_of(scene: Scene, model: str) -> str:
    name: str = (await scene.artifact("target-engine", model))["metadata"]["name"]
    return name


async def test_an_engine_that_two_models_need_is_built_once(scene: Scene) -> None:
    assert await engine_of(scene, "one") == await engine_of(scene, "two")
    assert len(await scene.jobs("engine-")) == 1


async def test_a_shared_engine_belongs_to_both(scene: Scene) -> None:
    assert await owners(scene, await engine_of(scene, "one")) == ["one", "two"]


async def test_a_model_with_other_limits_has_an_engine_of_its_own_and_lets_go_of_the_shared_one(scene: Scene) -> None:
    shared = await engine_of(scene, "one")
    await scene.apply("two", engine(engine={"maxBatchSize": 8, "maxSequenceLength": 512}))
    await scene.until_ready("two")
    await scene.until("two let go", lambda: _owned_by(scene, shared, ["one"]))
    assert await engine_of(scene, "two") != shared


async def test_going_back_shares_again_without_a_build(scene: Scene) -> None:
    shared = await engine_of(scene, "one")
    jobs = await scene.jobs("engine-")
    await scene.apply("two", engine())
    await scene.until_ready("two")
    await scene.until("both own it", lambda: _owned_by(scene, shared, ["one", "two"]))
    assert set(await scene.jobs("engine-")) <= set(jobs)


async def test_the_first_to_go_leaves_the_engine_and_the_last_takes_it_along(scene: Scene) -> None:
    shared = await engine_of(scene, "one")
    uid = (await scene.get(MODEL_ARTIFACTS, shared))["metadata"]["uid"]
    await scene.delete(SPECULATIVE_MODELS, "two")
    await scene.until("one owner is left", lambda: _owned_by(scene, shared, ["one"]))
    assert (await scene.get(MODEL_ARTIFACTS, shared))["metadata"]["uid"] == uid
    await scene.delete(SPECULATIVE_MODELS, "one")
    await scene.until_gone(MODEL_ARTIFACTS, shared)
    await scene.until("no Job is left", lambda: _no_jobs(scene))


async def _owned_by(scene: Scene, artifact: str, names: list[str]) -> bool:
    return await owners(scene, artifact) == names


async def _no_jobs(scene: Scene) -> bool:
    return not await scene.objects(JOBS)

"""Models that share an artifact neither take turns nor stop each other's Jobs."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from specdec_operator.cluster.resources import MODEL_ARTIFACTS, SPECULATIVE_MODELS
from specdec_operator.resources.labels import RETRY
from tests.integration.scene import Scene, Stage, baseline

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = [pytest.mark.controlplane, pytest.mark.asyncio(loop_scope="module")]

QUIET_SECONDS = 4.0
# Two seconds: longer than a key rests between its runs.
SETTLED_LOOKS = 10


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene(operated: Stage) -> AsyncIterator[Scene]:
    made = await operated.scene("turns")
    made.script.held = {"models"}
    await made.apply("one", baseline(pod={"nodeSelector": {"kubernetes.io/os": "linux"}}), annotations={RETRY: "1"})
    await made.until("one's download runs", lambda: _running(made))
    await made.apply("two", baseline(), annotations={RETRY: "2"})
    await made.until("both own it", lambda: _owned_by_both(made))
    yield made


async def test_another_models_scaling_leaves_a_running_download_alone(scene: Scene) -> None:
    before = await _artifact(scene)
    await scene.patch(SPECULATIVE_MODELS, "two", {"spec": {"replicas": 2}})
    await scene.until("the change is seen", lambda: _observed(scene, "two"))
    after = await _artifact(scene)
    assert (after.uid, after.job) == (before.uid, before.job)


async def test_different_requests_to_try_again_write_nothing_at_rest(scene: Scene) -> None:
    before = await _at_rest(scene)
    await asyncio.sleep(QUIET_SECONDS)
    assert await _artifact(scene) == before


async def test_the_model_whose_way_is_taken_may_start_over_another_way(scene: Scene) -> None:
    before = await _artifact(scene)
    await scene.apply("one", baseline(pod={"nodeSelector": {"kubernetes.io/arch": "amd64"}}))
    await scene.until("it is made anew", lambda: _remade(scene, before.uid))


@dataclass(frozen=True)
class Seen:
    """What is compared of an artifact."""

    uid: str
    version: str
    job: str


async def _artifact(scene: Scene) -> Seen:
    (document,) = await scene.objects(MODEL_ARTIFACTS)
    metadata = document["metadata"]
    return Seen(uid=metadata["uid"], version=metadata["resourceVersion"], job=document["status"]["job"])


async def _at_rest(scene: Scene) -> Seen:
    """The artifact, once both requests have been heard and answered: nothing was written to it for a while."""
    seen: list[Seen] = []

    async def unchanged() -> bool:
        seen.append(await _artifact(scene))
        return seen[-SETTLED_LOOKS:] == [seen[-1]] * SETTLED_LOOKS

    await scene.until("the artifact is at rest", unchanged)
    return seen[-1]


async def _running(scene: Scene) -> bool:
    found = await scene.objects(MODEL_ARTIFACTS)
    return bool(found) and found[0].get("status", {}).get("state") == "Running"


async def _owned_by_both(scene: Scene) -> bool:
    (document,) = await scene.objects(MODEL_ARTIFACTS)
    return len(document["metadata"]["ownerReferences"]) == 2


async def _observed(scene: Scene, name: str) -> bool:
    model = await scene.model(name)
    return bool(model["status"]["observedGeneration"] == model["metadata"]["generation"])


async def _remade(scene: Scene, uid: str) -> bool:
    found = await scene.objects(MODEL_ARTIFACTS)
    return bool(found) and found[0]["metadata"]["uid"] != uid

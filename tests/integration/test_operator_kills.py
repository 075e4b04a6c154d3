"""An operator that is killed and started again goes on: nothing is built twice, nothing is orphaned."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from specdec_operator.cluster.resources import (
    CONFIG_MAPS,
    CONTROLLER_REVISIONS,
    DEPLOYMENTS,
    JOBS,
    LEASES,
    MODEL_ARTIFACTS,
    SERVICES,
    SPECULATIVE_MODELS,
)
from specdec_operator.resources.labels import SELECTOR
from testbed.operator import OperatorProcess
from testbed.operator.install import grant_instance
from tests.integration.scene import JsonObject, Scene, Stage, condition, configuration, draft_target, stage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from testbed.cluster import Cluster
    from tests.integration.conftest import Ledger

pytestmark = [
    pytest.mark.controlplane,
    pytest.mark.asyncio(loop_scope="module"),
    # Three operators start twice, side by side.
    pytest.mark.timeout(240),
]

MADE = (MODEL_ARTIFACTS, JOBS, CONFIG_MAPS, CONTROLLER_REVISIONS, DEPLOYMENTS, SERVICES)
SECONDS = 90.0
LEASE_SECONDS = 3


@dataclass(frozen=True)
class Moment:
    """When the operator is killed.

    Attributes:
        name: also its namespace's.
        held: The kinds of Jobs that do not end before that.
        comes: whether the moment is there.
    """

    name: str
    held: frozenset[str]
    comes: Callable[[Scene], Awaitable[bool]]


async def _fetches(scene: Scene) -> bool:
    return len(await scene.jobs("model-")) == 2


async def _builds(scene: Scene) -> bool:
    return len(await scene.jobs("engine-")) == 2


async def _deploys(scene: Scene) -> bool:
    return await scene.find(DEPLOYMENTS, "pair-serving") is not None


MOMENTS = [
    Moment("while-models-are-fetched", frozenset({"models"}), _fetches),
    Moment("while-engines-are-built", frozenset({"builds"}), _builds),
    Moment("after-the-deployment-was-created", frozenset(), _deploys),
]


@dataclass(frozen=True)
class Story:
    """What happened in one namespace."""

    scene: Scene
    model: JsonObject
    exit_code: int | None


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stories(
    operator_cluster: Cluster, ledger: Ledger, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[dict[str, Story]]:
    """Kill three operators at once, each in a namespace of its own, and start them again."""
    async with stage(operator_cluster) as made:
        folder = tmp_path_factory.mktemp("operators")
        told = await asyncio.gather(
            *(_story(made, moment, _process(operator_cluster, moment, folder), ledger) for moment in MOMENTS)
        )
        yield dict(zip([moment.name for moment in MOMENTS], told, strict=True))


def _process(cluster: Cluster, moment: Moment, folder: Path) -> OperatorProcess:
    wanted = configuration(namespaces=[moment.name], instance=f"specdec-system/{moment.name}")
    return OperatorProcess(cluster, wanted, folder / moment.name)


async def _story(made: Stage, moment: Moment, operator: OperatorProcess, ledger: Ledger) -> Story:
    scene = await made.scene(moment.name)
    scene.script.held = set(moment.held)
    await asyncio.to_thread(grant_instance, made.cluster, moment.name)
    await asyncio.to_thread(operator.start)
    try:
        await scene.apply("pair", draft_target())
        async with asyncio.timeout(SECONDS):
            while not await moment.comes(scene):  # noqa: ASYNC110 - what is waited for is on the server
                await asyncio.sleep(0.02)
        operator.kill()
        await _shorten_lease(made, moment)
        scene.script.held = set()
        await asyncio.to_thread(operator.start)
        await operator.ready()
        model = await scene.until_condition("pair", "Served", "Unknown", reason="ProofUnreachable", seconds=SECONDS)
        ledger.requests[moment.name] = await operator.requests()
    finally:
        code = await asyncio.to_thread(operator.stop)
    return Story(scene, model, code)


async def _shorten_lease(made: Stage, moment: Moment) -> None:
    """Have the next operator wait for the dead one's Lease for a few seconds only."""
    patch = {"spec": {"leaseDurationSeconds": LEASE_SECONDS}}
    await made.api.patch_merge(LEASES, namespace="specdec-system", name=moment.name, patch=patch)


@pytest.fixture(params=[moment.name for moment in MOMENTS])
def story(stories: dict[str, Story], request: pytest.FixtureRequest) -> Story:
    return stories[request.param]


async def test_a_restarted_operator_goes_on_to_serving(story: Story) -> None:
    assert condition(story.model, "Available")["status"] == "True"


async def test_every_job_ran_once(story: Story) -> None:
    jobs = {job: story.scene.script.endings[job] for job in await story.scene.jobs()}
    artifacts = await story.scene.names(MODEL_ARTIFACTS)
    assert jobs == {f"{artifact}-1": 1 for artifact in artifacts}


async def test_everything_has_an_owner_that_exists(story: Story) -> None:
    scene = story.scene
    alive = {o["metadata"]["uid"] for r in (*MADE, SPECULATIVE_MODELS) for o in await scene.objects(r)}
    made = [o for r in MADE for o in await scene.objects(r, labels=SELECTOR)]
    orphans = [o["metadata"]["name"] for o in made if not {x["uid"] for x in _owners(o)} & alive]
    assert made
    assert orphans == []


async def test_only_one_revision_was_made(story: Story) -> None:
    assert len(await story.scene.revisions("pair")) == 1


async def test_sigterm_ends_the_operator_in_good_order(story: Story) -> None:
    assert story.exit_code == 0


async def test_nothing_is_left_once_the_model_is_gone(story: Story) -> None:
    scene = story.scene
    await scene.delete(SPECULATIVE_MODELS, "pair")

    async def nothing() -> bool:
        return not [o for r in MADE for o in await scene.objects(r, labels=SELECTOR)]

    await scene.until("everything is collected", nothing)


def _owners(document: JsonObject) -> list[JsonObject]:
    owners: list[JsonObject] = document["metadata"].get("ownerReferences", [])
    return owners

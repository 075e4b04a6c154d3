"""A changed spec: prepared beside what serves, swapped in when ready, taken back when it fails."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from specdec_operator.cluster.resources import CONFIG_MAPS, PODS, SPECULATIVE_MODELS
from specdec_operator.pod.termination import Failed, encode
from testbed.cluster.kwok import INIT_EXIT_CODE_ANNOTATION, INIT_MESSAGE_ANNOTATION, NEVER_READY_ANNOTATION
from testbed.operator import fails
from testbed.operator.prover import WRONG_ANSWER
from tests.integration.scene import JsonObject, Scene, Stage, baseline, condition, current, draft_target, engine

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = [pytest.mark.controlplane, pytest.mark.asyncio(loop_scope="module")]

WRONG_GPU = encode(Failed("DriverTooOld", "the driver is 535, the release needs 580: update it", terminal=True))
FAILING = {"annotations": {INIT_EXIT_CODE_ANNOTATION: "3", INIT_MESSAGE_ANNOTATION: WRONG_GPU}}
NEVER_READY = {"annotations": {NEVER_READY_ANNOTATION: "true"}}
SMALL = {"maxBatchSize": 8, "maxSequenceLength": 512}
OTHER = {"labels": {"example.com/generation": "two"}}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene(operated: Stage) -> AsyncIterator[Scene]:
    """Four models that serve their first revision, and one whose first revision fails."""
    made = await operated.scene("updates")
    for name in ("steady", "back", "swap", "scaled"):
        await made.apply(name, baseline())
    await made.apply("stillborn", baseline(pod=FAILING))
    for name in ("steady", "back", "swap", "scaled"):
        await made.until_ready(name)
    yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def building(operated: Stage) -> AsyncIterator[Scene]:
    """A model that serves with its first engine."""
    made = await operated.scene("updates-build")
    await made.apply("built", engine())
    await made.until_ready("built")
    yield made


def revision_of(deployment: JsonObject) -> str:
    name: str = deployment["spec"]["template"]["metadata"]["labels"]["specdec.dev/revision"]
    return name


async def test_the_old_revision_serves_untouched_until_the_new_engine_is_built(building: Scene) -> None:
    before = await building.deployment("built")
    building.script.held = {"builds"}
    await building.apply("built", engine(engine=SMALL))
    model = await building.until_condition("built", "EnginesReady", "False", reason="Building")
    after = await building.deployment("built")
    assert after["metadata"]["generation"] == before["metadata"]["generation"]
    assert (condition(model, "Available")["status"], condition(model, "Ready")["status"]) == ("True", "False")


async def test_the_new_revision_is_swapped_in_once_its_engine_is_built(building: Scene) -> None:
    old = (await building.model("built"))["status"]["currentRevision"]
    building.script.held = set()
    await building.apply("built", engine(engine=SMALL))
    model = await building.until_ready("built")
    assert model["status"]["currentRevision"] == revision_of(await building.deployment("built")) != old


async def test_parameters_that_clients_need_not_send_any_more_leave_the_endpoint(building: Scene) -> None:
    await building.apply("pair", draft_target())
    model = await building.until_ready("pair")
    assert model["status"]["endpoint"]["requestParameters"]
    await building.apply("pair", engine())
    model = await building.until_ready("pair")
    assert "requestParameters" not in model["status"]["endpoint"]
    await building.delete(SPECULATIVE_MODELS, "pair")


async def test_a_build_that_fails_leaves_the_old_revision_serving(building: Scene) -> None:
    before = revision_of(await building.deployment("built"))
    building.script.builds = [fails("EngineBuildFailed")]
    await building.apply("built", engine(engine={**SMALL, "maxBatchSize": 9}))
    model = await building.until_stalled("built", "EngineBuildFailed")
    assert revision_of(await building.deployment("built")) == before
    assert condition(model, "Available")["status"] == "True"


async def test_the_files_of_what_serves_come_back_while_a_change_halts(building: Scene) -> None:
    await building.until_stalled("built", "EngineBuildFailed")
    await _files_come_back(building, "built")


async def test_a_revision_whose_pods_fail_is_taken_back(scene: Scene) -> None:
    good = (await scene.model("steady"))["status"]["currentRevision"]
    await scene.apply("steady", baseline(pod=FAILING))
    model = await scene.until_stalled("steady", "DriverTooOld")
    await scene.until("the good one is back", lambda: _runs(scene, "steady", good))
    assert model["status"]["failedRevision"]["name"] != good
    assert "the release needs 580" in condition(model, "Stalled")["message"]


async def test_what_was_taken_back_is_available_but_not_ready(scene: Scene) -> None:
    await scene.until_stalled("steady", "DriverTooOld")
    model = await scene.until_condition("steady", "Available", "True")
    said = condition(model, "Ready")
    assert (said["status"], said["reason"], model["status"]["readyReplicas"]) == ("False", "DriverTooOld", 1)


async def test_a_failed_revision_is_not_tried_again(scene: Scene) -> None:
    await scene.until_condition("steady", "Available", "True")
    before = (await scene.deployment("steady"))["metadata"]["generation"]
    await scene.patch(SPECULATIVE_MODELS, "steady", {"metadata": {"annotations": {"example.com/touched": "yes"}}})
    await asyncio.sleep(1.5)
    assert (await scene.deployment("steady"))["metadata"]["generation"] == before


async def test_the_files_of_the_revision_that_returned_come_back(scene: Scene) -> None:
    await scene.until_condition("steady", "Available", "True")
    await _files_come_back(scene, "steady")


async def test_another_spec_after_a_failed_revision_goes_on(scene: Scene) -> None:
    await scene.apply("steady", baseline(pod=OTHER))
    model = await scene.until_ready("steady")
    assert "failedRevision" not in model["status"]


async def test_going_back_makes_the_older_revision_current_without_a_job_or_a_rendering(scene: Scene) -> None:
    first = (await scene.model("back"))["status"]["currentRevision"]
    await scene.apply("back", baseline(pod=OTHER))
    await scene.until_ready("back")
    made = await scene.names(CONFIG_MAPS), await scene.jobs()
    await scene.apply("back", baseline())
    model = await scene.until_ready("back")
    assert model["status"]["currentRevision"] == first
    assert (await scene.names(CONFIG_MAPS), await scene.jobs()) == made


async def test_ready_is_not_claimed_for_a_spec_that_is_not_served_yet(scene: Scene) -> None:
    """Look all the time while a swap goes on: kstatus says Current only for what serves."""
    applied = await scene.apply("swap", baseline(pod=OTHER))
    generation = applied["metadata"]["generation"]
    old = applied["status"]["currentRevision"]
    while True:
        model = await scene.model("swap")
        ready = condition(model, "Ready")
        claimed = current(model) and ready["status"] == "True"
        if claimed:
            break
        assert not (ready["status"] == "True" and ready["observedGeneration"] == generation)
        await asyncio.sleep(0.02)
    assert revision_of(await scene.deployment("swap")) == model["status"]["currentRevision"] != old


async def test_a_transition_time_moves_only_with_the_status(scene: Scene) -> None:
    before = await scene.until_ready("scaled")
    await scene.apply("scaled", baseline(service={"annotations": {"example.com/note": "new"}}))
    after = await scene.until_ready("scaled")
    assert after["metadata"]["generation"] == before["metadata"]["generation"] + 1
    times = [[(c["type"], c["lastTransitionTime"]) for c in m["status"]["conditions"]] for m in (before, after)]
    assert times[0] == times[1]


async def test_a_first_revision_that_fails_gives_its_gpus_back(scene: Scene) -> None:
    model = await scene.until_stalled("stillborn", "DriverTooOld")
    await scene.until("no pod is left", lambda: _pods(scene, "stillborn", 0))
    assert (await scene.deployment("stillborn"))["spec"]["replicas"] == 0
    assert "specdec.dev/restart" in condition(model, "Stalled")["message"]


async def test_a_restart_tries_a_failed_first_revision_again(scene: Scene) -> None:
    await scene.until_stalled("stillborn", "DriverTooOld")
    await scene.apply("stillborn", baseline(pod=FAILING), annotations={"specdec.dev/restart": "1"})
    old = (await scene.model("stillborn"))["status"]["failedRevision"]["name"]

    async def failed_again() -> bool:
        return bool((await scene.model("stillborn"))["status"].get("failedRevision", {}).get("name") not in (old, None))

    await scene.until("another revision was tried", failed_again)


async def test_a_spec_that_works_mends_a_failed_first_revision(scene: Scene) -> None:
    await scene.apply("stillborn", baseline())
    await scene.until_ready("stillborn")


async def test_the_scale_subresource_changes_the_pods(scene: Scene) -> None:
    await scene.patch(SPECULATIVE_MODELS, "scaled", {"spec": {"replicas": 2}}, subresource="scale")
    await scene.until("two pods", lambda: _pods(scene, "scaled", 2))
    model = await scene.until_ready("scaled")
    assert (model["status"]["replicas"], model["status"]["readyReplicas"]) == (2, 2)


async def test_the_selector_in_status_selects_exactly_the_serving_pods(scene: Scene) -> None:
    model = await scene.until_ready("scaled")
    selected = await scene.objects(PODS, labels=model["status"]["selector"])
    assert len(selected) == model["status"]["replicas"]


async def test_scaling_makes_no_new_revision(scene: Scene) -> None:
    before = len(await scene.revisions("scaled"))
    await scene.patch(SPECULATIVE_MODELS, "scaled", {"spec": {"replicas": 1}}, subresource="scale")
    await scene.until("one pod", lambda: _pods(scene, "scaled", 1))
    await scene.until_ready("scaled")
    assert len(await scene.revisions("scaled")) == before


async def test_no_replicas_are_no_pods_and_not_ready(scene: Scene) -> None:
    await scene.patch(SPECULATIVE_MODELS, "scaled", {"spec": {"replicas": 0}}, subresource="scale")
    await scene.until("no pod", lambda: _pods(scene, "scaled", 0))
    model = await scene.until_condition("scaled", "Ready", "False", reason="NoPods")
    assert not condition(model, "Reconciling")


async def test_a_suspended_model_keeps_models_and_engines_and_runs_no_pod(scene: Scene) -> None:
    await scene.apply("swap", baseline(suspend=True))
    await scene.until("no pod", lambda: _pods(scene, "swap", 0))
    await scene.until_condition("swap", "Ready", "False", reason="Suspended")
    assert (await scene.artifact("target", "swap"))["status"]["state"] == "Ready"


async def test_a_resumed_model_serves_again_without_a_job(scene: Scene) -> None:
    jobs = await scene.jobs()
    await scene.apply("swap", baseline())
    await scene.until_ready("swap")
    assert await scene.jobs() == jobs


async def test_a_revision_that_answers_wrongly_for_too_long_is_taken_back(operated: Stage, scene: Scene) -> None:
    await scene.apply("wrong", baseline())
    good = (await scene.until_ready("wrong"))["status"]["currentRevision"]
    operated.prover.outcomes["wrong"] = WRONG_ANSWER
    await scene.apply("wrong", baseline(pod=OTHER))
    model = await scene.until_condition("wrong", "Served", "False", reason="WrongAnswer")
    assert revision_of(await scene.deployment("wrong")) != good
    aged = {**model["status"]["proof"], "wrongSince": "2020-01-01T00:00:00Z"}
    await scene.patch(SPECULATIVE_MODELS, "wrong", {"status": {"proof": aged}}, subresource="status")
    await scene.until_stalled("wrong", "WrongAnswer")
    await scene.until("the good one is back", lambda: _runs(scene, "wrong", good))


async def test_a_failed_revision_is_remembered_before_it_is_taken_back(scene: Scene) -> None:
    await scene.apply("order", baseline())
    good = (await scene.until_ready("order"))["status"]["currentRevision"]
    await scene.apply("order", baseline(pod=FAILING))
    await scene.until("the failing one runs", lambda: _runs_other(scene, "order", good))
    async with asyncio.timeout(60):
        while await _runs_other(scene, "order", good):  # noqa: ASYNC110 - the moment itself is what counts
            await asyncio.sleep(0.002)
    assert "failedRevision" in (await scene.model("order"))["status"]


async def _runs_other(scene: Scene, model: str, revision: str) -> bool:
    return revision_of(await scene.deployment(model)) != revision


async def test_pods_of_a_first_revision_are_seen_while_a_change_is_prepared(scene: Scene) -> None:
    scene.script.held.add("testbed/held")
    await scene.apply("early", baseline(pod=NEVER_READY))
    await scene.until_condition("early", "Available", "False", reason="PodsStarting")
    await scene.apply("early", baseline("testbed/held", pod=NEVER_READY))
    model = await scene.until_condition("early", "ModelsCached", "False", reason="Fetching")
    assert (model["status"]["replicas"], condition(model, "Available")["reason"]) == (1, "PodsStarting")


async def test_pods_of_a_first_revision_are_suspended_while_a_change_is_prepared(scene: Scene) -> None:
    await scene.apply("early", baseline("testbed/held", pod=NEVER_READY, suspend=True))
    await scene.until("no pod", lambda: _pods(scene, "early", 0))


async def test_pods_that_never_become_ready_leave_the_model_reconciling(scene: Scene) -> None:
    await scene.apply("slow", baseline(pod=NEVER_READY))
    model = await scene.until_condition("slow", "Available", "False", reason="PodsStarting")
    assert (condition(model, "Reconciling")["status"], condition(model, "Ready")["status"]) == ("True", "False")


async def _pods(scene: Scene, model: str, count: int) -> bool:
    live = [p for p in await scene.serving_pods(model) if "deletionTimestamp" not in p["metadata"]]
    return len(live) == count


async def _files_come_back(scene: Scene, model: str) -> None:
    template = (await scene.deployment(model))["spec"]["template"]
    volume = next(v for v in template["spec"]["volumes"] if v["name"] == "program")
    files = await scene.get(CONFIG_MAPS, volume["configMap"]["name"])
    await scene.delete(CONFIG_MAPS, files["metadata"]["name"])
    await scene.until_replaced(CONFIG_MAPS, files)


async def _runs(scene: Scene, model: str, revision: str) -> bool:
    return revision_of(await scene.deployment(model)) == revision

"""From a spec to a proven endpoint, method by method, and rest afterwards."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from specdec_operator.cluster.resources import (
    CONFIG_MAPS,
    CONTROLLER_REVISIONS,
    DEPLOYMENTS,
    JOBS,
    MODEL_ARTIFACTS,
    PERSISTENT_VOLUME_CLAIMS,
    SERVICES,
    SPECULATIVE_MODELS,
)
from testbed.operator.prover import UNREACHABLE, WRONG_ANSWER
from tests.integration.scene import (
    PRODUCT,
    Scene,
    Stage,
    baseline,
    condition,
    configuration,
    draft_target,
    eagle3,
    engine,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = [pytest.mark.controlplane, pytest.mark.asyncio(loop_scope="module")]

# Oftener than the configuration lets a user ask for.
RESYNC_SECONDS = 3
CONFIGURATION = configuration().model_copy(update={"resync_seconds": RESYNC_SECONDS})
SPECS = {
    "base": baseline(),
    "built": engine(),
    "head": eagle3(),
    "hidden": baseline("testbed/hidden"),
    "mute": baseline("testbed/mute"),
    "pair": draft_target(),
}
PROVEN = ("base", "built", "head", "pair")
WRITTEN = (
    SPECULATIVE_MODELS,
    MODEL_ARTIFACTS,
    DEPLOYMENTS,
    SERVICES,
    CONFIG_MAPS,
    CONTROLLER_REVISIONS,
    JOBS,
    PERSISTENT_VOLUME_CLAIMS,
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene(operated: Stage) -> AsyncIterator[Scene]:
    made = await operated.scene("serving")
    operated.prover.outcomes |= {"hidden": UNREACHABLE, "mute": WRONG_ANSWER}
    for name, spec in SPECS.items():
        await made.apply(name, spec)
    yield made


async def launch_input(scene: Scene, model: str, program: str) -> dict[str, object]:
    """Return what a program of the serving pods reads, from the ConfigMap that they mount."""
    template = (await scene.deployment(model))["spec"]["template"]
    volume = next(v for v in template["spec"]["volumes"] if v["name"] == "program")
    files = await scene.get(CONFIG_MAPS, volume["configMap"]["name"])
    read: dict[str, object] = json.loads(files["data"][f"{program}.json"])
    return read


async def test_a_target_alone_on_the_llm_api_is_served_and_proven(scene: Scene) -> None:
    model = await scene.until_ready("base")
    assert (condition(model, "Served")["status"], model["status"]["backend"]) == ("True", "LLMAPI")


async def test_an_eagle3_pair_is_served_and_says_that_its_shape_was_checked(scene: Scene) -> None:
    model = await scene.until_ready("head")
    assert condition(model, "PairVerified")["reason"] == "ShapeCompatibleUnverified"


async def test_a_draft_target_pair_is_served_from_two_engines(scene: Scene) -> None:
    model = await scene.until_ready("pair")
    engines = [a["role"] for a in model["status"]["artifacts"] if a["kind"] == "Engine" and a["state"] == "Ready"]
    assert sorted(engines) == ["draft-engine", "target-engine"]


async def test_an_engine_is_built_for_a_target_alone(scene: Scene) -> None:
    model = await scene.until_ready("built")
    assert condition(model, "EnginesReady")["reason"] == "Built"


async def test_ranks_and_devices_of_a_pair_are_derived(scene: Scene) -> None:
    placement = (await scene.until_ready("pair"))["status"]["placement"]
    assert placement == {
        "gpusPerReplica": 2,
        "worldSize": 3,
        "orchestration": "Orchestrator",
        "models": [
            {"role": "target", "devices": [1], "participantIds": [2]},
            {"role": "draft", "devices": [0], "participantIds": [1]},
        ],
    }


async def test_a_pairs_server_is_started_by_mpirun_with_all_ranks(scene: Scene) -> None:
    await scene.until_ready("pair")
    argv = (await launch_input(scene, "pair", "launch"))["argv"]
    assert isinstance(argv, list)
    assert argv[0].endswith("mpirun")
    assert argv.count("tritonserver") + sum(a.endswith("/tritonserver") for a in argv) == 3


async def test_a_pairs_models_take_their_ranks_from_participant_ids(scene: Scene) -> None:
    await scene.until_ready("pair")
    models = (await launch_input(scene, "pair", "assemble"))["models"]
    assert isinstance(models, list)
    ids = {m["name"]: m["values"]["participant_ids"] for m in models if m["values"].get("participant_ids")}
    assert ids == {"tensorrt_llm": "2", "tensorrt_llm_draft": "1"}


async def test_a_pairs_pods_ask_for_the_gpus_and_the_product_of_its_placement(scene: Scene) -> None:
    await scene.until_ready("pair")
    pod = (await scene.deployment("pair"))["spec"]["template"]["spec"]
    server = next(c for c in pod["containers"] if c["name"] == "server")
    assert server["resources"]["limits"]["nvidia.com/gpu"] == "2"
    assert pod["nodeSelector"] == {"nvidia.com/gpu.product": PRODUCT}


async def test_the_endpoint_in_status_is_a_service_with_triton_s_three_ports(scene: Scene) -> None:
    model = await scene.until_ready("base")
    service = await scene.get(SERVICES, "base-serving")
    assert model["status"]["endpoint"]["http"] == "http://base-serving.serving.svc.cluster.local:8000"
    assert [port["port"] for port in service["spec"]["ports"]] == [8000, 8001, 8002]


async def test_a_ready_model_is_neither_reconciling_nor_stalled(scene: Scene) -> None:
    model = await scene.until_ready("base")
    types = [c["type"] for c in model["status"]["conditions"]]
    assert types == ["Accepted", "ModelsCached", "PairVerified", "EnginesReady", "Available", "Served", "Ready"]


async def test_what_can_t_be_proven_from_here_is_unknown(scene: Scene) -> None:
    model = await scene.until_condition("hidden", "Ready", "Unknown", reason="ProofUnreachable")
    assert condition(model, "Available")["status"] == "True"


async def test_a_server_that_answers_nothing_useful_is_not_ready(scene: Scene) -> None:
    model = await scene.until_condition("mute", "Ready", "False", reason="WrongAnswer")
    assert condition(model, "Served")["status"] == "False"


async def test_a_resync_writes_nothing_and_proves_nothing_again(operated: Stage, scene: Scene) -> None:
    assert operated.operator is not None
    for name in PROVEN:
        await scene.until_ready(name)
    await scene.until_condition("hidden", "Ready", "Unknown")
    # Events and the endpoints of the last pods come a moment after the conditions.
    await asyncio.sleep(2)
    before, requests = await versions(scene), await operated.operator.requests()
    asked = {name: operated.prover.asked[name] for name in PROVEN}
    await asyncio.sleep(RESYNC_SECONDS * 1.1 + 2)
    since = (await operated.operator.requests()).since(requests)
    assert since.counts[("get", "speculativemodels", "200")] >= len(SPECS)
    assert since.writes() == {}
    assert await versions(scene) == before
    assert {name: operated.prover.asked[name] for name in PROVEN} == asked


async def versions(scene: Scene) -> dict[tuple[str, str], str]:
    """Return the resourceVersion of every object that the operator makes or writes to."""
    return {
        (resource.plural, found["metadata"]["name"]): found["metadata"]["resourceVersion"]
        for resource in WRITTEN
        for found in await scene.objects(resource)
    }

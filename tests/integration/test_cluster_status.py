"""The skip rule on a custom resource's status, judged by the API server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from specdec_operator.api.v1alpha1.status import (
    ArtifactStatus,
    Condition,
    EndpointStatus,
    ModelPlacement,
    Pin,
    PlacementStatus,
    SpeculativeModelStatus,
)
from specdec_operator.cluster.apply import ensure_status
from specdec_operator.cluster.errors import Conflict, Invalid
from specdec_operator.cluster.resources import SPECULATIVE_MODELS
from tests.integration.cluster_api import Workplace, workplace

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from testbed.cluster import Cluster

pytestmark = pytest.mark.controlplane

Json = dict[str, Any]


@pytest.fixture
async def place(served: Cluster) -> AsyncIterator[Workplace]:
    async with workplace(served) as made:
        yield made
        for live in await made.stranger.list(SPECULATIVE_MODELS, namespace=made.namespace):
            await made.stranger.delete(SPECULATIVE_MODELS, namespace=made.namespace, name=live["metadata"]["name"])


async def model(place: Workplace) -> Json:
    body = {
        "apiVersion": SPECULATIVE_MODELS.api_version,
        "kind": SPECULATIVE_MODELS.kind,
        "metadata": {"namespace": place.namespace, "name": "llama"},
        "spec": {
            "target": {"source": {"huggingFace": {"repository": "meta-llama/Llama-3.1-8B-Instruct"}}},
            "draft": {"source": {"huggingFace": {"repository": "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B"}}},
            "speculation": {"method": "Eagle3", "maxDraftTokens": 3},
        },
    }
    return await place.stranger.create(SPECULATIVE_MODELS, body)


def body_of(place: Workplace, status: SpeculativeModelStatus) -> Json:
    return {
        "apiVersion": SPECULATIVE_MODELS.api_version,
        "kind": SPECULATIVE_MODELS.kind,
        "metadata": {"namespace": place.namespace, "name": "llama"},
        "status": json.loads(status.model_dump_json(by_alias=True, exclude_none=True)),
    }


def condition(kind: str, reason: str) -> Condition:
    return Condition(
        type=kind, status="False", reason=reason, last_transition_time="2026-11-21T00:00:00Z", observed_generation=1
    )


def full_status() -> SpeculativeModelStatus:
    return SpeculativeModelStatus(
        observed_generation=1,
        conditions=[condition("Ready", "FetchingModels"), condition("Accepted", "Accepted")],
        artifacts=[ArtifactStatus(role="target", kind="Model", name="m-1", key="abc", state="Pending")],
        placement=PlacementStatus(
            gpus_per_replica=1, world_size=1, models=[ModelPlacement(role="target", devices=[0])]
        ),
        endpoint=EndpointStatus(http="http://llama:8000", request_parameters={"stream": "false"}),
        pins=[Pin(name="runtime.release", value="26.02")],
        controller="specdec/release",
    )


@pytest.mark.parametrize("status", [full_status(), SpeculativeModelStatus()], ids=["full", "default"])
async def test_an_equal_status_is_not_written_again(place: Workplace, status: SpeculativeModelStatus) -> None:
    live = await model(place)
    written = await ensure_status(place.api, SPECULATIVE_MODELS, body_of(place, status), live=live)
    again = await ensure_status(place.api, SPECULATIVE_MODELS, body_of(place, status), live=written.object)
    assert (written.changed, again.changed) == (True, False)


async def test_a_condition_that_is_dropped_goes(place: Workplace) -> None:
    live = await model(place)
    written = await ensure_status(place.api, SPECULATIVE_MODELS, body_of(place, full_status()), live=live)
    fewer = full_status().model_copy(update={"conditions": [condition("Ready", "FetchingModels")]})
    live = (await ensure_status(place.api, SPECULATIVE_MODELS, body_of(place, fewer), live=written.object)).object
    assert [each["type"] for each in live["status"]["conditions"]] == ["Ready"]


async def test_a_changed_condition_is_written(place: Workplace) -> None:
    live = await model(place)
    written = await ensure_status(place.api, SPECULATIVE_MODELS, body_of(place, full_status()), live=live)
    changed = full_status().model_copy(update={"conditions": [condition("Ready", "BuildingEngines")]})
    again = await ensure_status(place.api, SPECULATIVE_MODELS, body_of(place, changed), live=written.object)
    assert again.object["status"]["conditions"][0]["reason"] == "BuildingEngines"


async def test_a_status_that_a_user_changed_by_hand_is_put_right(place: Workplace) -> None:
    live = await model(place)
    await ensure_status(place.api, SPECULATIVE_MODELS, body_of(place, full_status()), live=live)
    forged = await place.stranger.patch_merge(
        SPECULATIVE_MODELS,
        namespace=place.namespace,
        name="llama",
        patch={"status": {"controller": "somebody/else"}},
        subresource="status",
    )
    live = (await ensure_status(place.api, SPECULATIVE_MODELS, body_of(place, full_status()), live=forged)).object
    assert live["status"]["controller"] == "specdec/release"


async def test_the_status_of_a_model_made_anew_under_the_name_is_not_written(place: Workplace) -> None:
    stale = await model(place)
    await place.stranger.delete(SPECULATIVE_MODELS, namespace=place.namespace, name="llama")
    await model(place)
    with pytest.raises(Conflict):
        await ensure_status(place.api, SPECULATIVE_MODELS, body_of(place, full_status()), live=stale)


async def test_an_unknown_status_field_is_refused_rather_than_dropped(place: Workplace) -> None:
    live = await model(place)
    body = body_of(place, full_status())
    body["status"]["unheardOf"] = 1
    with pytest.raises(Invalid, match="unheardOf"):
        await ensure_status(place.api, SPECULATIVE_MODELS, body, live=live)

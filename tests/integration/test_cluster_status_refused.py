"""A status that the API server refuses does not stay in the past: a smaller one says so."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from specdec_operator.cluster.resources import MODEL_ARTIFACTS, SPECULATIVE_MODELS
from specdec_operator.reconcile.own_writes import OwnWrites
from specdec_operator.reconcile.status_write import write_status
from tests.integration.cluster_api import Workplace, workplace

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from specdec_operator.cluster.resources import ResourceType
    from specdec_operator.reconcile.context import Context
    from testbed.cluster import Cluster

pytestmark = pytest.mark.controlplane

Json = dict[str, Any]
SPECS: dict[str, Json] = {
    "SpeculativeModel": {
        "target": {"source": {"huggingFace": {"repository": "a/b"}}},
        "speculation": {"method": "None"},
    },
    "ModelArtifact": {
        "type": "Model",
        "key": "a" * 64,
        "image": "example.com/triton:1",
        "fetch": {"repository": "a/b", "directory": "models/x"},
    },
}
CONDITIONS = [{"type": "Accepted", "status": "True", "reason": "Accepted", "message": "b" * 2048}]
STATUSES: dict[str, Json] = {
    "SpeculativeModel": {"conditions": CONDITIONS, "controller": "a/b", "currentRevision": "c"},
    "ModelArtifact": {"conditions": CONDITIONS, "state": "Running", "reason": "Fetching", "attempts": 7},
}
BAD: dict[str, list[Json]] = {
    "SpeculativeModel": [
        {"selector": "x" * 1025},
        {"placement": {"worldSize": -1}},
        {"conditions": [{**CONDITIONS[0], "message": "x" * 2049}]},
        {"conditions": [{**CONDITIONS[0], "reason": "two words"}]},
        {"replicas": "three"},
        {"unheardOf": 1},
        {"pins": [{"name": "a", "value": "x" * 1025}], "failedRevision": {"name": "a"}},
    ],
    "ModelArtifact": [
        {"message": "x" * 2049},
        {"digest": "no digest"},
        {"reason": "r" * 65, "facts": {"layers": 0}},
        {"facts": {"layers": 10**30}},
        {"state": "Odd"},
        {"job": 5},
    ],
}
CASES = [pytest.param(kind, bad, id=f"{kind} {' '.join(bad)}") for kind, cases in BAD.items() for bad in cases]


class Events:
    async def record(self, _regarding: Any, **_: Any) -> None:
        """Tell nobody."""


@pytest.fixture
async def place(served: Cluster) -> AsyncIterator[Workplace]:
    async with workplace(served) as made:
        yield made
        for resource in (SPECULATIVE_MODELS, MODEL_ARTIFACTS):
            for live in await made.stranger.list(resource, namespace=made.namespace):
                await made.stranger.delete(resource, namespace=made.namespace, name=live["metadata"]["name"])


def context(place: Workplace) -> Context:
    definitions = SimpleNamespace(fitted=lambda _kind, status: status)
    return cast(
        "Context",
        SimpleNamespace(
            api=place.api,
            definitions=definitions,
            events=Events(),
            own_writes=OwnWrites(),
            now=lambda: datetime.now(UTC),
        ),
    )


def resource_of(kind: str) -> ResourceType:
    return SPECULATIVE_MODELS if kind == "SpeculativeModel" else MODEL_ARTIFACTS


async def with_status(place: Workplace, kind: str) -> Json:
    """Return an object with a status that was taken."""
    resource = resource_of(kind)
    metadata = {"namespace": place.namespace, "name": "any"}
    head = {"apiVersion": resource.api_version, "kind": kind, "metadata": metadata}
    live = await place.stranger.create(resource, {**head, "spec": SPECS[kind]})
    return await write_status(context(place), resource, STATUSES[kind], live=live)


def sums(live: Json) -> dict[str, tuple[str, str]]:
    wanted = ("Ready", "Reconciling", "Stalled")
    return {c["type"]: (c["status"], c["reason"]) for c in live["status"]["conditions"] if c["type"] in wanted}


@pytest.mark.parametrize(("kind", "bad"), CASES)
async def test_a_refused_status_is_written_without_what_was_refused(place: Workplace, kind: str, bad: Json) -> None:
    live = await with_status(place, kind)
    written = await write_status(context(place), resource_of(kind), {**STATUSES[kind], **bad}, live=live)
    assert sums(written) == {"Ready": ("False", "StatusRejected"), "Stalled": ("True", "StatusRejected")}


@pytest.mark.parametrize(("kind", "bad"), CASES)
async def test_a_status_that_goes_on_being_refused_is_written_once(place: Workplace, kind: str, bad: Json) -> None:
    live = await with_status(place, kind)
    written = await write_status(context(place), resource_of(kind), {**STATUSES[kind], **bad}, live=live)
    again = await write_status(context(place), resource_of(kind), {**STATUSES[kind], **bad}, live=written)
    assert again["metadata"]["resourceVersion"] == written["metadata"]["resourceVersion"]


async def test_what_an_artifact_remembers_outlives_a_refused_status(place: Workplace) -> None:
    live = await with_status(place, "ModelArtifact")
    status = {**STATUSES["ModelArtifact"], "attempts": 8, "digest": "no digest"}
    written = (await write_status(context(place), MODEL_ARTIFACTS, status, live=live))["status"]
    assert (written["state"], written["attempts"]) == ("Failed", 8)


async def test_the_refusal_is_quoted(place: Workplace) -> None:
    live = await with_status(place, "SpeculativeModel")
    status = {**STATUSES["SpeculativeModel"], "selector": "x" * 1025}
    written = (await write_status(context(place), SPECULATIVE_MODELS, status, live=live))["status"]
    (ready,) = [c for c in written["conditions"] if c["type"] == "Ready"]
    assert "status.selector: Too long: may not be more than 1024 " in ready["message"]

"""The client, owner references and Events on a real API server."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

import kopf
import pytest

from specdec_operator.cluster.credentials import StaticToken
from specdec_operator.cluster.errors import AlreadyExists, ApiError, Conflict, Forbidden, Invalid, NotFound
from specdec_operator.cluster.events import EventLimits, EventRecorder
from specdec_operator.cluster.http import HttpKubernetesApi
from specdec_operator.cluster.kubeconfig import kubeconfig_credentials
from specdec_operator.cluster.login import login_handler, open_session
from specdec_operator.cluster.owners import add_owner, remove_owner
from specdec_operator.cluster.resources import CONFIG_MAPS, EVENTS, JOBS, PODS
from tests.integration.cluster_api import Workplace, workplace

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from testbed.cluster import Cluster

pytestmark = pytest.mark.controlplane


@pytest.fixture
async def place(cluster: Cluster) -> AsyncIterator[Workplace]:
    async with workplace(cluster) as made:
        yield made


async def make(place: Workplace, name: str, **rest: Any) -> dict[str, Any]:
    return await place.api.create(CONFIG_MAPS, place.body(CONFIG_MAPS, name, **rest))


async def test_listed_objects_carry_their_kind(place: Workplace) -> None:
    listed = await place.api.list(CONFIG_MAPS, namespace=place.namespace, field_selector="metadata.name=owner")
    assert [(each["apiVersion"], each["kind"]) for each in listed] == [("v1", "ConfigMap")]


async def test_a_label_selector_narrows_a_list(place: Workplace) -> None:
    body = place.body(CONFIG_MAPS, "labelled")
    body["metadata"]["labels"] = {"app": "x"}
    await place.api.create(CONFIG_MAPS, body)
    listed = await place.api.list(CONFIG_MAPS, namespace=place.namespace, label_selector="app=x")
    assert [each["metadata"]["name"] for each in listed] == ["labelled"]


async def test_a_missing_object_is_not_found(place: Workplace) -> None:
    with pytest.raises(NotFound):
        await place.api.get(PODS, namespace=place.namespace, name="nobody")


async def test_a_second_create_finds_the_name_taken(place: Workplace) -> None:
    await make(place, "twice")
    with pytest.raises(AlreadyExists):
        await make(place, "twice")


async def test_an_unknown_field_is_refused(place: Workplace) -> None:
    with pytest.raises(ApiError, match="strict decoding error") as refusal:
        await make(place, "wrong", unheardOf=1)
    assert refusal.value.status == 400


async def test_an_object_that_breaks_its_schema_is_invalid_with_the_field_named(place: Workplace) -> None:
    with pytest.raises(Invalid) as refusal:
        await place.api.create(JOBS, place.body(JOBS, "empty", spec={"template": {"spec": {"containers": []}}}))
    assert "spec.template.spec.containers" in {cause["field"] for cause in refusal.value.details["causes"]}


async def test_a_replace_of_a_stale_version_conflicts(place: Workplace) -> None:
    stale = await make(place, "changed")
    patch = {"data": {"a": "1"}}
    await place.stranger.patch_merge(CONFIG_MAPS, namespace=place.namespace, name="changed", patch=patch)
    with pytest.raises(Conflict):
        await place.api.replace(CONFIG_MAPS, stale)


async def test_a_field_of_another_manager_conflicts_without_force(place: Workplace) -> None:
    await make(place, "theirs", data={"a": "1"})
    with pytest.raises(Conflict):
        await place.stranger.apply(CONFIG_MAPS, place.body(CONFIG_MAPS, "theirs", data={"a": "2"}))


async def test_a_delete_of_another_uid_conflicts(place: Workplace) -> None:
    await make(place, "kept")
    with pytest.raises(Conflict):
        await place.api.delete(CONFIG_MAPS, namespace=place.namespace, name="kept", uid="not-this-one")


async def test_a_deleted_object_is_gone(place: Workplace) -> None:
    made = await make(place, "short-lived")
    await place.api.delete(CONFIG_MAPS, namespace=place.namespace, name="short-lived", uid=made["metadata"]["uid"])
    with pytest.raises(NotFound):
        await place.api.get(CONFIG_MAPS, namespace=place.namespace, name="short-lived")


async def test_a_missing_right_names_verb_and_resource(cluster: Cluster) -> None:
    credentials = kubeconfig_credentials(cluster.kubeconfig)
    nobody = dataclasses.replace(credentials, headers={"Impersonate-User": "nobody"})
    async with open_session(nobody) as session:
        api = HttpKubernetesApi(session, credentials.server)
        with pytest.raises(Forbidden, match=r"list jobs\.batch"):
            await api.list(JOBS)


async def test_a_wrong_token_is_unauthorized(cluster: Cluster) -> None:
    credentials = kubeconfig_credentials(cluster.kubeconfig)
    async with open_session(dataclasses.replace(credentials, tokens=StaticToken("wrong"))) as session:
        with pytest.raises(ApiError) as refusal:
            await HttpKubernetesApi(session, credentials.server).list(PODS)
    assert refusal.value.status == 401


async def test_owners_are_added_and_removed_one_by_one(place: Workplace) -> None:
    second = await make(place, "second-owner")
    shared = await make(place, "shared")
    shared = await add_owner(place.api, CONFIG_MAPS, shared, owner=second)
    shared = await remove_owner(place.api, CONFIG_MAPS, shared, owner_uid=place.owner_uid)
    assert [each["name"] for each in shared["metadata"]["ownerReferences"]] == ["second-owner"]


async def test_an_owner_is_not_added_to_a_stale_object(place: Workplace) -> None:
    second = await make(place, "second-owner")
    stale = await make(place, "shared")
    patch = {"data": {"a": "1"}}
    await place.stranger.patch_merge(CONFIG_MAPS, namespace=place.namespace, name="shared", patch=patch)
    with pytest.raises(Conflict):
        await add_owner(place.api, CONFIG_MAPS, stale, owner=second)


async def test_an_event_is_stored_once_and_its_repetitions_are_counted(place: Workplace) -> None:
    limits = EventLimits(series_interval=0.0)
    recorder = EventRecorder(place.api, controller="specdec.dev/operator", instance="test", limits=limits)
    for _ in range(3):
        await recorder.record(
            place.owner, kind="Warning", reason="FetchFailed", note="no such repository", action="Fetch"
        )
    events = await place.api.list(EVENTS, namespace=place.namespace)
    assert [(each["reason"], each["series"]["count"]) for each in events] == [("FetchFailed", 3)]


async def test_kopf_and_the_client_log_in_from_one_source(cluster: Cluster) -> None:
    credentials = kubeconfig_credentials(cluster.kubeconfig)
    info = await login_handler(credentials)(logger=None, param=None)
    assert isinstance(info, kopf.AiohttpSession)
    async with info.aiohttp_session as session, session.get(f"{info.server}/version") as response:
        assert json.loads(await response.text())["major"] == "1"

"""Create and apply, judged by the API server."""

from __future__ import annotations

import asyncio
import copy
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from specdec_operator.cluster.apply import ensure_applied, ensure_created, ensure_status
from specdec_operator.cluster.errors import Conflict, NameTaken
from specdec_operator.cluster.ownership import managed_entry, owned_equal
from specdec_operator.cluster.resources import CONFIG_MAPS, CONTROLLER_REVISIONS, DEPLOYMENTS, JOBS, SERVICES
from specdec_operator.cluster.resources import PERSISTENT_VOLUME_CLAIMS as CLAIMS
from tests.integration.cluster_api import Workplace, workplace

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from specdec_operator.cluster.resources import ResourceType
    from testbed.cluster import Cluster

pytestmark = pytest.mark.controlplane

Json = dict[str, Any]
NOTHING: Counter[str] = Counter()


@pytest.fixture
async def place(cluster: Cluster) -> AsyncIterator[Workplace]:
    async with workplace(cluster) as made:
        yield made


def container() -> Json:
    return {
        "name": "triton",
        "image": "registry.example/triton:1",
        "args": ["launch", "--x"],
        "ports": [{"name": "http", "containerPort": 8000}, {"name": "grpc", "containerPort": 8001, "protocol": "TCP"}],
        "env": [
            {"name": "TRTLLM_ORCHESTRATOR", "value": "1"},
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}},
        ],
        "resources": {"limits": {"nvidia.com/gpu": "1", "cpu": "2"}, "requests": {"cpu": "2"}},
        "readinessProbe": {"httpGet": {"path": "/v2/models/a/ready", "port": 8000}, "timeoutSeconds": 5},
        "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }


def deployment(place: Workplace) -> Json:
    body = place.body(
        DEPLOYMENTS,
        "serving",
        spec={
            "replicas": 1,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
            "selector": {"matchLabels": {"app": "serving"}},
            "template": {
                "metadata": {"labels": {"app": "serving"}, "annotations": {"note": "a", "other": "b"}},
                "spec": {
                    "initContainers": [
                        {"name": "check", "image": "registry.example/triton:1"},
                        {"name": "assemble", "image": "registry.example/triton:1"},
                    ],
                    "containers": [container()],
                    "nodeSelector": {"nvidia.com/gpu.product": "X"},
                    "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
                    "volumes": [{"name": "scratch", "emptyDir": {}}],
                },
            },
        },
    )
    body["metadata"]["labels"] = {"app": "serving", "role": "server"}
    return body


def service(place: Workplace) -> Json:
    ports = [{"name": "http", "port": 8000, "targetPort": "http"}, {"name": "dns", "port": 53, "protocol": "UDP"}]
    return place.body(SERVICES, "endpoint", spec={"selector": {"app": "serving"}, "ports": ports, "type": "ClusterIP"})


def config_map(place: Workplace) -> Json:
    return place.body(CONFIG_MAPS, "programs", data={"a.py": "print()", "b": ""}, immutable=True)


def claim(place: Workplace) -> Json:
    resources = {"requests": {"storage": "1Gi"}}
    return place.body(CLAIMS, "store", spec={"accessModes": ["ReadWriteOnce"], "resources": resources})


def revision(place: Workplace) -> Json:
    return place.body(CONTROLLER_REVISIONS, "revision", revision=1, data={"pins": {"release": "26.02"}, "items": [1]})


def job(place: Workplace) -> Json:
    containers = [{"name": "fetch", "image": "registry.example/fetch:1"}]
    template = {"spec": {"restartPolicy": "Never", "containers": containers}}
    return place.body(JOBS, "fetch", spec={"backoffLimit": 0, "template": template})


CHILDREN = {
    "Deployment": (DEPLOYMENTS, deployment),
    "Service": (SERVICES, service),
    "ConfigMap": (CONFIG_MAPS, config_map),
    "PersistentVolumeClaim": (CLAIMS, claim),
    "ControllerRevision": (CONTROLLER_REVISIONS, revision),
}


async def read(place: Workplace, resource: ResourceType, body: Json) -> Json:
    return await place.api.get(resource, namespace=place.namespace, name=body["metadata"]["name"])


async def ensure(place: Workplace, resource: ResourceType, body: Json) -> Json:
    live = await read(place, resource, body)
    return (await ensure_applied(place.api, resource, body, owner_uid=place.owner_uid, live=live)).object


async def made(place: Workplace, resource: ResourceType, body: Json) -> Json:
    applied = await ensure_applied(place.api, resource, body, owner_uid=place.owner_uid, live=None)
    place.writes()
    return applied.object


@pytest.mark.parametrize("kind", CHILDREN)
async def test_the_second_ensure_of_a_child_sends_nothing(place: Workplace, kind: str) -> None:
    resource, render = CHILDREN[kind]
    await made(place, resource, render(place))
    await ensure(place, resource, render(place))
    assert place.writes() == NOTHING


async def test_a_child_is_made_by_a_create_and_one_rewrite_of_its_field_ownership(place: Workplace) -> None:
    await ensure_applied(place.api, SERVICES, service(place), owner_uid=place.owner_uid, live=None)
    assert place.writes() == Counter(create=1, patch=1)


@pytest.mark.parametrize("kind", CHILDREN)
async def test_the_rewritten_ownership_is_that_of_an_apply(place: Workplace, kind: str) -> None:
    resource, render = CHILDREN[kind]
    live = await made(place, resource, render(place))
    rewritten = managed_entry(live, manager=place.api.field_manager, operation="Apply")
    applied = managed_entry(
        await place.api.apply(resource, render(place)), manager=place.api.field_manager, operation="Apply"
    )
    assert rewritten
    assert applied
    assert rewritten["fieldsV1"] == applied["fieldsV1"]


async def test_no_update_entry_of_ours_remains(place: Workplace) -> None:
    live = await made(place, DEPLOYMENTS, deployment(place))
    assert managed_entry(live, manager=place.api.field_manager, operation="Update") is None


async def test_an_update_entry_left_by_a_killed_process_is_taken_over(place: Workplace) -> None:
    await place.api.create(DEPLOYMENTS, deployment(place))
    await ensure(place, DEPLOYMENTS, deployment(place))
    place.writes()
    live = await ensure(place, DEPLOYMENTS, deployment(place))
    entry = managed_entry(live, manager=place.api.field_manager, operation="Update")
    assert (entry, place.writes()) == (None, NOTHING)


async def test_an_update_entry_beside_an_apply_entry_is_joined_to_it(place: Workplace) -> None:
    await place.api.create(SERVICES, service(place))
    await place.api.apply(SERVICES, service(place), force=True)
    live = await ensure(place, SERVICES, service(place))
    ours = [each["operation"] for each in live["metadata"]["managedFields"] if each["manager"] == "specdec-operator"]
    assert ours == ["Apply"]


async def test_a_field_dropped_after_a_killed_create_goes(place: Workplace) -> None:
    await place.api.create(DEPLOYMENTS, deployment(place))
    body = deployment(place)
    del body["metadata"]["labels"]["role"]
    live = await ensure(place, DEPLOYMENTS, body)
    assert live["metadata"]["labels"] == {"app": "serving"}


async def test_a_changed_field_is_written(place: Workplace) -> None:
    await made(place, DEPLOYMENTS, deployment(place))
    body = deployment(place)
    body["spec"]["replicas"] = 3
    live = await ensure(place, DEPLOYMENTS, body)
    assert live["spec"]["replicas"] == 3


async def test_a_dropped_list_item_goes(place: Workplace) -> None:
    await made(place, DEPLOYMENTS, deployment(place))
    body = deployment(place)
    del body["spec"]["template"]["spec"]["containers"][0]["env"][0]
    live = await ensure(place, DEPLOYMENTS, body)
    names = [variable["name"] for variable in live["spec"]["template"]["spec"]["containers"][0]["env"]]
    assert names == ["POD_IP"]


async def test_a_dropped_map_goes_and_leaves_foreign_keys(place: Workplace) -> None:
    await made(place, DEPLOYMENTS, deployment(place))
    await add_foreign_label(place)
    body = deployment(place)
    del body["metadata"]["labels"]
    live = await ensure(place, DEPLOYMENTS, body)
    assert live["metadata"]["labels"] == {"team": "a"}


async def test_reordered_init_containers_are_written(place: Workplace) -> None:
    await made(place, DEPLOYMENTS, deployment(place))
    body = deployment(place)
    body["spec"]["template"]["spec"]["initContainers"].reverse()
    live = await ensure(place, DEPLOYMENTS, body)
    names = [each["name"] for each in live["spec"]["template"]["spec"]["initContainers"]]
    assert names == ["assemble", "check"]


async def test_drift_by_a_foreign_hand_is_put_right(place: Workplace) -> None:
    await made(place, SERVICES, service(place))
    patch = {"spec": {"selector": {"app": "mine"}}}
    await place.stranger.patch_merge(SERVICES, namespace=place.namespace, name="endpoint", patch=patch)
    live = await ensure(place, SERVICES, service(place))
    assert live["spec"]["selector"] == {"app": "serving"}


async def test_a_field_that_a_stranger_removed_comes_back(place: Workplace) -> None:
    await made(place, DEPLOYMENTS, deployment(place))
    operations = [{"op": "remove", "path": "/spec/template/metadata/annotations/note"}]
    await place.stranger.patch_json(DEPLOYMENTS, namespace=place.namespace, name="serving", operations=operations)
    live = await ensure(place, DEPLOYMENTS, deployment(place))
    assert live["spec"]["template"]["metadata"]["annotations"] == {"note": "a", "other": "b"}


async def add_foreign_label(place: Workplace) -> None:
    patch = {"metadata": {"labels": {"team": "a"}}}
    await place.stranger.patch_merge(DEPLOYMENTS, namespace=place.namespace, name="serving", patch=patch)


async def add_sidecar(place: Workplace) -> None:
    sidecar = {"name": "mesh", "image": "registry.example/mesh:1"}
    body = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"namespace": place.namespace, "name": "serving"},
        "spec": {"template": {"spec": {"containers": [sidecar]}}},
    }
    await place.stranger.apply(DEPLOYMENTS, body)


async def test_a_foreign_label_and_a_sidecar_cause_no_write(place: Workplace) -> None:
    await made(place, DEPLOYMENTS, deployment(place))
    await add_foreign_label(place)
    await add_sidecar(place)
    await ensure(place, DEPLOYMENTS, deployment(place))
    assert place.writes() == NOTHING


async def test_a_foreign_label_and_a_sidecar_survive_our_next_apply(place: Workplace) -> None:
    await made(place, DEPLOYMENTS, deployment(place))
    await add_foreign_label(place)
    await add_sidecar(place)
    body = deployment(place)
    body["spec"]["replicas"] = 2
    live = await ensure(place, DEPLOYMENTS, body)
    containers = [each["name"] for each in live["spec"]["template"]["spec"]["containers"]]
    assert (live["metadata"]["labels"]["team"], sorted(containers)) == ("a", ["mesh", "triton"])


async def test_a_strangers_object_is_named_and_left_untouched(place: Workplace) -> None:
    foreign = copy.deepcopy(config_map(place))
    del foreign["metadata"]["ownerReferences"]
    theirs = await place.stranger.create(CONFIG_MAPS, foreign)
    with pytest.raises(NameTaken, match="programs exists and has no controller"):
        await ensure_applied(place.api, CONFIG_MAPS, config_map(place), owner_uid=place.owner_uid, live=None)
    now = await read(place, CONFIG_MAPS, foreign)
    assert now["metadata"]["resourceVersion"] == theirs["metadata"]["resourceVersion"]


async def test_an_object_replaced_since_it_was_read_is_not_applied_to(place: Workplace) -> None:
    stale = await made(place, CONFIG_MAPS, config_map(place))
    await place.stranger.delete(CONFIG_MAPS, namespace=place.namespace, name="programs")
    foreign = config_map(place)
    foreign["data"] = {"theirs": "1"}
    await place.stranger.create(CONFIG_MAPS, foreign)
    body = config_map(place)
    body["metadata"]["labels"] = {"new": "1"}
    with pytest.raises(Conflict):
        await ensure_applied(place.api, CONFIG_MAPS, body, owner_uid=place.owner_uid, live=stale)


async def test_concurrent_creators_of_one_job_all_get_the_same_one(place: Workplace) -> None:
    jobs = await asyncio.gather(
        *(ensure_created(place.api, JOBS, job(place), owner_uid=place.owner_uid) for _ in range(8))
    )
    assert len({each["metadata"]["uid"] for each in jobs}) == 1


async def test_a_job_on_its_way_out_is_returned_as_such(place: Workplace) -> None:
    body = job(place)
    body["metadata"]["finalizers"] = ["test.specdec.dev/hold"]
    await place.api.create(JOBS, body)
    await place.api.delete(JOBS, namespace=place.namespace, name="fetch")
    live = await ensure_created(place.api, JOBS, job(place), owner_uid=place.owner_uid)
    operations = [{"op": "remove", "path": "/metadata/finalizers"}]
    await place.stranger.patch_json(JOBS, namespace=place.namespace, name="fetch", operations=operations)
    assert "deletionTimestamp" in live["metadata"]


async def test_the_status_and_the_object_are_judged_apart(place: Workplace) -> None:
    live = await made(place, SERVICES, service(place))
    condition = {
        "type": "A",
        "status": "True",
        "reason": "A",
        "message": "",
        "lastTransitionTime": "2026-11-21T00:00:00Z",
    }
    status = place.body(SERVICES, "endpoint", status={"conditions": [condition]})
    live = (await ensure_status(place.api, SERVICES, status, live=live)).object
    assert owned_equal(service(place), live, manager=place.api.field_manager)

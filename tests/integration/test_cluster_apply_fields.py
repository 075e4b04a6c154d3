"""A field that leaves a spec leaves nothing behind: each is set, then left out, on the real API server."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

from specdec_operator.api.v1alpha1.pod import Pod, Service
from specdec_operator.cluster.apply import ensure_applied
from specdec_operator.cluster.resources import DEPLOYMENTS, SERVICES
from specdec_operator.resources.serving import render_revision
from specdec_operator.resources.template import Templates
from specdec_operator.resources.workload import deployment, service
from tests.integration.cluster_api import Workplace, workplace
from tests.unit.specs import BASELINE, BASELINE_VLLM, model, plan_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from specdec_operator.cluster.resources import ResourceType
    from testbed.cluster import Cluster

pytestmark = pytest.mark.controlplane

Json = dict[str, Any]
TEMPLATES = Templates()
ASSIGNED = ("clusterIP", "clusterIPs")
"""What the API server gives each Service, whatever is asked."""

ROLLED = "deployment.kubernetes.io/revision"

TERM = {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}
NEIGHBOUR = {"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": "zone"}
POD: Json = {
    "nodeSelector": {"zone": "a"},
    "tolerations": [{"key": "spot", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}],
    "affinity": {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [TERM]}},
        "podAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": NEIGHBOUR}]
        },
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [NEIGHBOUR]},
    },
    "imagePullSecrets": ["registry"],
    "priorityClassName": "high",
    "schedulerName": "another",
    "runtimeClassName": "nvidia",
    "serviceAccountName": "another",
    "runAsUser": 2000,
    "runAsGroup": 2000,
    "fsGroup": 2000,
    "labels": {"team": "a"},
    "annotations": {"note": "a"},
    "environment": [{"name": "A", "value": "1"}, {"name": "EMPTY"}],
    "serverResources": {"cpu": "7", "memory": "77Gi"},
    "jobResources": {"cpu": "7", "memory": "77Gi"},
}
SERVICE: Json = {"type": "LoadBalancer", "annotations": {"note": "a"}}
CHANGES: dict[str, Json] = {
    **{f"pod.{field}": {"pod": {field: value}} for field, value in POD.items()},
    **{f"service.{field}": {"service": {field: value}} for field, value in SERVICE.items()},
    "service.type NodePort": {"service": {"type": "NodePort"}},
    "all of pod and service": {"pod": POD, "service": SERVICE},
    "placement.gpu": {"placement": {"gpu": {"resourceClaimTemplate": "gpus"}}},
    "update.strategy": {"update": {"strategy": "Surge", "startupMinutes": 5}},
    "serving.openAIFrontEnd": {"serving": {"openAIFrontEnd": {}}},
    "target in an image": {"target": {"source": {"image": {"reference": "example.com/model:1"}}}},
    "replicas": {"replicas": 4},
}
BASES = {"serving.openAIFrontEnd": BASELINE_VLLM}


@pytest.fixture
async def place(cluster: Cluster) -> AsyncIterator[Workplace]:
    async with workplace(cluster) as made:
        yield made


def rendered(place: Workplace, base: Json, changes: Json) -> list[tuple[ResourceType, Json]]:
    """Return a model's Deployment and Service; what changes with each revision by design is held still."""
    made = model(base, **changes)
    plan = plan_of(made)
    revision = render_revision(made, plan, assembly_digest="ab" * 32, templates=TEMPLATES)
    bodies = [deployment(made, revision, templates=TEMPLATES), service(made, templates=TEMPLATES)]
    for body in bodies:
        owned = place.body(DEPLOYMENTS, "any")["metadata"]
        body["metadata"] |= {"namespace": place.namespace, "ownerReferences": owned["ownerReferences"]}
    return list(zip((DEPLOYMENTS, SERVICES), copy.deepcopy(bodies), strict=True))


async def applied(place: Workplace, objects: list[tuple[ResourceType, Json]], held: list[Json | None]) -> list[Json]:
    return [
        (await ensure_applied(place.api, resource, body, owner_uid=place.owner_uid, live=live)).object
        for (resource, body), live in zip(objects, held, strict=True)
    ]


def seen(live: Json) -> Json:
    """Return what a user asked for and the API server filled in."""
    spec = {name: value for name, value in live["spec"].items() if name not in ASSIGNED}
    annotations = live["metadata"].get("annotations") or {}
    told = {name: value for name, value in annotations.items() if name != ROLLED}
    return {"spec": spec, "labels": live["metadata"]["labels"], "annotations": told}


def differences(found: Any, wanted: Any, path: str = "") -> list[str]:
    """Return the paths at which two objects differ, and how."""
    if isinstance(found, dict) and isinstance(wanted, dict):
        names = sorted({*found, *wanted})
        return [d for n in names for d in differences(found.get(n), wanted.get(n), f"{path}.{n}")]
    if isinstance(found, list) and isinstance(wanted, list) and len(found) == len(wanted):
        return [d for n, pair in enumerate(zip(found, wanted, strict=True)) for d in differences(*pair, f"{path}[{n}]")]
    return [] if found == wanted else [f"{path}: {found!r} is not {wanted!r}"]


def test_every_field_of_pod_and_service_is_tried() -> None:
    assert (set(POD), set(SERVICE)) == tuple(
        {field.alias for field in kind.model_fields.values()} for kind in (Pod, Service)
    )


@pytest.mark.parametrize("change", CHANGES)
async def test_a_field_that_goes_leaves_what_would_be_there_without_it(place: Workplace, change: str) -> None:
    base = BASES.get(change, BASELINE)
    bare = rendered(place, base, {})
    full = await applied(place, rendered(place, base, CHANGES[change]), [None, None])
    after = await applied(place, bare, list(full))
    for resource, body in bare:
        await place.stranger.delete(resource, namespace=place.namespace, name=body["metadata"]["name"])
    fresh = await applied(place, bare, [None, None])
    assert differences([seen(live) for live in after], [seen(live) for live in fresh]) == []

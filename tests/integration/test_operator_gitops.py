"""What GitOps tools rest on: no difference after a sync, replicas that stay the autoscaler's, prune and make again."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from specdec_operator.api.yaml_text import read_yaml
from specdec_operator.cluster.http import HttpKubernetesApi
from specdec_operator.cluster.kubeconfig import kubeconfig_credentials
from specdec_operator.cluster.login import open_session
from specdec_operator.cluster.resources import (
    DEPLOYMENTS,
    MODEL_ARTIFACTS,
    PERSISTENT_VOLUME_CLAIMS,
    SPECULATIVE_MODELS,
    ResourceType,
)
from tests import argocd, kstatus
from tests.integration.scene import NAMESPACES, JsonObject, Scene, Stage, baseline, current

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from specdec_operator.cluster.api import Propagation

pytestmark = [pytest.mark.controlplane, pytest.mark.asyncio(loop_scope="module")]

GITOPS = Path(__file__).parents[2] / "gitops"
CRDS = GITOPS.parent / "crds"
HEALTH = (GITOPS / "argocd" / "health.lua").read_text(encoding="utf-8")
AUTOSCALERS = ResourceType("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", namespaced=True)
RESOURCES = {r.kind: r for r in (NAMESPACES, PERSISTENT_VOLUME_CLAIMS, SPECULATIVE_MODELS, AUTOSCALERS)}
"""What the examples hold of kinds that every cluster with the operator has."""
MANAGER = "argocd-controller"
NAME = "llama-8b"
QUIET_SECONDS = 3.0
HOLD = "example.com/hold"


def manifests() -> list[JsonObject]:
    """The models repository of the examples, as kustomize renders it: namespaced, namespaces and stores first."""
    folder = GITOPS / "models"
    listed = read_yaml((folder / "kustomization.yaml").read_text(encoding="utf-8"))
    read = [read_yaml((folder / name).read_text(encoding="utf-8")) for name in listed["resources"]]
    found = [document for document in read if document["kind"] in RESOURCES]
    for document in found:
        if RESOURCES[document["kind"]].namespaced:
            document["metadata"]["namespace"] = listed["namespace"]
    return found


def schema() -> JsonObject:
    """The schema of SpeculativeModel, as the cluster has it."""
    crd = read_yaml((CRDS / "specdec.dev_speculativemodels.yaml").read_text(encoding="utf-8"))
    found: JsonObject = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


def defaulted(value: Any, described: JsonObject) -> Any:
    """A value with the defaults of its schema, put in as the API server does."""
    if isinstance(value, list):
        return [defaulted(part, described.get("items", {})) for part in value]
    if not isinstance(value, dict):
        return value
    properties = described.get("properties", {})
    defaults = {name: part["default"] for name, part in properties.items() if "default" in part}
    return {name: defaulted(part, properties.get(name, {})) for name, part in (defaults | value).items()}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def tool(operated: Stage) -> AsyncIterator[HttpKubernetesApi]:
    """The API server as a GitOps tool sees it: another field manager."""
    credentials = kubeconfig_credentials(operated.cluster.kubeconfig)
    async with open_session(credentials) as session:
        yield HttpKubernetesApi(session, credentials.server, field_manager=MANAGER)


async def sync(tool: HttpKubernetesApi) -> dict[str, JsonObject]:
    """Apply the examples, as Argo CD and Flux do; return what the API server made of each kind."""
    return {d["kind"]: await tool.apply(RESOURCES[d["kind"]], d, force=True) for d in manifests()}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene(operated: Stage, tool: HttpKubernetesApi) -> AsyncIterator[Scene]:
    made = await operated.scene("models", volumes=2)
    await sync(tool)
    yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rested(scene: Scene) -> JsonObject:
    """The model once it is ready and nothing more is written."""
    seen = await scene.until_ready(NAME)
    while True:
        await asyncio.sleep(QUIET_SECONDS)
        now = await scene.model(NAME)
        if now["metadata"]["resourceVersion"] == seen["metadata"]["resourceVersion"]:
            return now
        seen = now


async def test_a_synced_model_becomes_current_and_healthy(rested: JsonObject) -> None:
    assert (kstatus.verdict(rested), argocd.health(HEALTH, rested).status) == ("Current", "Healthy")


async def test_another_sync_changes_nothing(tool: HttpKubernetesApi, rested: JsonObject) -> None:
    synced = await sync(tool)
    assert synced["SpeculativeModel"]["metadata"]["resourceVersion"] == rested["metadata"]["resourceVersion"]


@pytest.mark.usefixtures("rested")
async def test_the_operator_owns_nothing_of_a_model_but_its_status(scene: Scene) -> None:
    model = await scene.model(NAME)
    fields = {
        (entry["manager"], entry.get("subresource", ""), *sorted(entry["fieldsV1"]))
        for entry in model["metadata"]["managedFields"]
    }
    assert fields == {(MANAGER, "", "f:spec"), ("specdec-operator", "status", "f:status")}


@pytest.mark.usefixtures("rested")
async def test_nothing_is_added_to_a_model_s_labels_annotations_and_finalizers(scene: Scene) -> None:
    metadata = (await scene.model(NAME))["metadata"]
    given = {"name", "namespace"}
    servers = {"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"}
    assert set(metadata) == given | servers


@pytest.mark.usefixtures("rested")
async def test_what_a_live_spec_has_beyond_its_manifest_is_the_crd_s_own_defaults(scene: Scene) -> None:
    (manifest,) = [d for d in manifests() if d["kind"] == "SpeculativeModel"]
    live = await scene.model(NAME)
    assert live["spec"] == defaulted(manifest["spec"], schema()["properties"]["spec"])


@pytest.mark.usefixtures("rested")
async def test_the_replicas_that_an_autoscaler_sets_survive_a_sync(scene: Scene, tool: HttpKubernetesApi) -> None:
    await scene.patch(SPECULATIVE_MODELS, NAME, {"spec": {"replicas": 2}}, subresource="scale")
    await scene.until("two replicas", lambda: _replicas(scene, 2))
    await sync(tool)
    assert (await scene.model(NAME))["spec"]["replicas"] == 2
    await scene.until_ready(NAME)


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
async def test_a_model_that_is_pruned_and_made_again_at_once_serves_again(
    scene: Scene, tool: HttpKubernetesApi, propagation: Propagation
) -> None:
    before = (await scene.until_ready(NAME))["metadata"]["uid"]
    await tool.delete(SPECULATIVE_MODELS, namespace=scene.namespace, name=NAME, propagation=propagation)
    await sync(tool)
    await scene.until("it is made again", lambda: _made_again(scene, tool, before))
    again = await scene.until_ready(NAME)
    deployment = await scene.deployment(NAME)
    assert again["metadata"]["uid"] != before
    assert deployment["metadata"]["ownerReferences"][0]["uid"] == again["metadata"]["uid"]


async def test_a_store_outlives_the_models_that_are_pruned(scene: Scene, tool: HttpKubernetesApi) -> None:
    await scene.until_ready(NAME)
    claim = await scene.get(PERSISTENT_VOLUME_CLAIMS, "models")
    await scene.delete(SPECULATIVE_MODELS, NAME)
    await scene.until_gone(DEPLOYMENTS, f"{NAME}-serving")
    await scene.until("no artifact", lambda: _none(scene, MODEL_ARTIFACTS))
    assert (await scene.get(PERSISTENT_VOLUME_CLAIMS, "models"))["metadata"]["uid"] == claim["metadata"]["uid"]
    await sync(tool)


async def test_a_model_that_something_else_holds_back_from_its_deletion_is_terminating(scene: Scene) -> None:
    metadata = {"name": "held", "namespace": scene.namespace, "finalizers": [HOLD]}
    body: dict[str, Any] = {"apiVersion": "specdec.dev/v1alpha1", "kind": "SpeculativeModel", "metadata": metadata}
    await scene.api.create(SPECULATIVE_MODELS, body | {"spec": baseline("testbed/held-back")})
    await scene.until("it was looked at", lambda: _looked_at(scene, "held"))
    await scene.delete(SPECULATIVE_MODELS, "held")
    held = await scene.model("held")
    await scene.patch(SPECULATIVE_MODELS, "held", {"metadata": {"finalizers": None}})
    assert (kstatus.verdict(held), argocd.health(HEALTH, held).status) == ("Terminating", "Progressing")


async def _replicas(scene: Scene, count: int) -> bool:
    return bool((await scene.model(NAME))["status"].get("replicas") == count)


async def _made_again(scene: Scene, tool: HttpKubernetesApi, before: str) -> bool:
    """Whether another model is there; what a sync wrote to one that was still leaving is written again."""
    found = await scene.find(SPECULATIVE_MODELS, NAME)
    if found is None:
        await sync(tool)
    return found is not None and found["metadata"]["uid"] != before


async def _none(scene: Scene, resource: ResourceType) -> bool:
    return not await scene.objects(resource)


async def _looked_at(scene: Scene, name: str) -> bool:
    return current(await scene.model(name))

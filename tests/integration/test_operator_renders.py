"""What `specdec render` prints is what the operator applied."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from specdec_operator.api.v1alpha1.model_artifact import ModelArtifact
from specdec_operator.api.v1alpha1.speculative_model import parse
from specdec_operator.cluster.resources import (
    CONFIG_MAPS,
    CONTROLLER_REVISIONS,
    DEPLOYMENTS,
    JOBS,
    MODEL_ARTIFACTS,
    PERSISTENT_VOLUME_CLAIMS,
    SERVICES,
)
from specdec_operator.resources.known import Known
from specdec_operator.resources.render import Renderer
from specdec_operator.resources.template import Templates
from specdec_operator.runtimes.table import load_table
from tests.integration.scene import Scene, Stage, configuration, draft_target, eagle3, engine

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = [pytest.mark.controlplane, pytest.mark.asyncio(loop_scope="module")]

CONFIGURATION = configuration()


def _target(repository: str) -> dict[str, Any]:
    return {"source": {"huggingFace": {"repository": repository}}}


# No two share an artifact: a shared one is as the first model asked for it.
SPECS = {
    "pair": draft_target(
        target=_target("testbed/one"),
        serving={"maxBatchSize": 2},
        pod={"environment": [{"name": "NOTE", "value": "$(HOME) $$ {{ 1 }} \u2028 \xe9"}]},
        update={"startupMinutes": 7},
    ),
    "head": eagle3(
        target=_target("testbed/two"),
        pod={"annotations": {"note": 'a: "b"\n- c'}, "serverResources": {"cpu": "1500m"}},
    ),
    "built": engine("testbed/three", replicas=0, pod={"serverResources": {"memory": "1024Mi"}}),
}
RESOURCES = {
    resource.kind: resource
    for resource in (
        CONFIG_MAPS,
        CONTROLLER_REVISIONS,
        DEPLOYMENTS,
        JOBS,
        MODEL_ARTIFACTS,
        PERSISTENT_VOLUME_CLAIMS,
        SERVICES,
    )
}
WHOLE = {"ConfigMap": ("data", "immutable"), "ControllerRevision": ("data",), "ModelArtifact": ("spec",)}
"""What the API server adds nothing to."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene(operated: Stage) -> AsyncIterator[Scene]:
    made = await operated.scene("rendering")
    for name, spec in SPECS.items():
        await made.apply(name, spec)
    yield made


async def rendered(scene: Scene, name: str) -> list[dict[str, Any]]:
    """What is rendered for a model with what its artifacts say."""
    document = await scene.model(name)
    used = {entry["role"]: entry["name"] for entry in document["status"]["artifacts"]}
    artifacts = {
        role: ModelArtifact.model_validate(await scene.get(MODEL_ARTIFACTS, artifact))
        for role, artifact in used.items()
    }
    known = Known(
        models={role: artifact.status.facts for role, artifact in artifacts.items() if artifact.status.facts},
        data_sets={role: artifact.status.data_set for role, artifact in artifacts.items() if artifact.status.data_set},
        engines={role: artifact.status.digest for role, artifact in artifacts.items() if artifact.spec.build},
        assembly=artifacts["assembly"].status.digest,
    )
    renderer = Renderer(table=load_table(), configuration=CONFIGURATION, templates=Templates())
    rendering = renderer.render(parse({**document, "status": {}}), known)
    assert rendering.missing == ()
    return list(rendering.objects)


def without_uids(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_uids(part) for key, part in value.items() if key != "uid"}
    return [without_uids(part) for part in value] if isinstance(value, list) else value


def lacks(wanted: Any, live: Any, path: str = "") -> list[str]:
    """Where a live object is not what is wanted; what the API server added is passed over."""
    if isinstance(wanted, dict) and isinstance(live, dict):
        return [lack for key, part in wanted.items() for lack in lacks(part, live.get(key), f"{path}.{key}")]
    if isinstance(wanted, list) and isinstance(live, list) and len(wanted) == len(live):
        pairs = enumerate(zip(wanted, live, strict=True))
        return [lack for index, (part, other) in pairs for lack in lacks(part, other, f"{path}[{index}]")]
    return [] if wanted == live else [f"{path}: {wanted!r} is {live!r}"]


@pytest.mark.parametrize("name", SPECS)
async def test_every_rendered_object_is_there_as_rendered(scene: Scene, name: str) -> None:
    await scene.until_condition(name, "EnginesReady", "True")
    await scene.until(f"{name}: a Deployment", lambda: _served(scene, name))

    for document in await rendered(scene, name):
        live = await scene.get(RESOURCES[document["kind"]], document["metadata"]["name"])
        owners = document["metadata"].pop("ownerReferences", [])
        found = live["metadata"].get("ownerReferences", [])
        assert lacks(document, live) == [], document["metadata"]["name"]
        assert all(owner in without_uids(found) for owner in without_uids(owners))
        for part in WHOLE.get(document["kind"], ()):
            assert document[part] == live[part], f"{document['metadata']['name']}: {part}"


@pytest.mark.parametrize("name", SPECS)
async def test_nothing_is_applied_that_is_not_rendered(scene: Scene, name: str) -> None:
    await scene.until_condition(name, "EnginesReady", "True")
    await scene.until(f"{name}: a Deployment", lambda: _served(scene, name))
    expected = {(o["kind"], o["metadata"]["name"]) for o in await rendered(scene, name)}
    labels = f"specdec.dev/model={name}"

    for resource in (DEPLOYMENTS, SERVICES, CONTROLLER_REVISIONS, CONFIG_MAPS):
        found = {(resource.kind, o["metadata"]["name"]) for o in await scene.objects(resource, labels=labels)}
        assert found <= expected


async def _served(scene: Scene, name: str) -> bool:
    return await scene.find(DEPLOYMENTS, f"{name}-serving") is not None

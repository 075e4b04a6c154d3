"""A namespace of a test in which the operator works, and the words to look at it and to disturb it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from specdec_operator.api.configuration import OperatorConfiguration
from specdec_operator.cluster.errors import AlreadyExists, NotFound
from specdec_operator.cluster.http import HttpKubernetesApi
from specdec_operator.cluster.kubeconfig import kubeconfig_credentials
from specdec_operator.cluster.login import open_session
from specdec_operator.cluster.resources import (
    CONTROLLER_REVISIONS,
    DEPLOYMENTS,
    EVENTS,
    JOBS,
    MODEL_ARTIFACTS,
    PODS,
    SPECULATIVE_MODELS,
    ResourceType,
)
from specdec_operator.resources.labels import serving_name
from testbed.operator import JobPlayer, Script, ScriptedProver

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from testbed.cluster import Cluster
    from testbed.operator import InProcessOperator

NAMESPACES = ResourceType("", "v1", "namespaces", "Namespace", namespaced=False)
VOLUMES = ResourceType("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)
STORAGE_CLASSES = ResourceType("storage.k8s.io", "v1", "storageclasses", "StorageClass", namespaced=False)
JsonObject = dict[str, Any]

SECONDS = 60.0
POLL_SECONDS = 0.2
PRODUCT = "NVIDIA-H100-80GB-HBM3"
INSTANCE = "specdec-system/specdec-operator"


def configuration(**fields: Any) -> OperatorConfiguration:
    """Return a configuration with a default store, and jobs tried twice, that reads nodes as the chart's does."""
    usual = {"storage": {"claim": {"size": "10Gi"}}, "jobAttempts": 2, "instance": INSTANCE, "readNodes": True}
    return OperatorConfiguration.model_validate({**usual, **fields})


def baseline(repository: str = "testbed/llama", **spec: Any) -> JsonObject:
    """Return the spec of a target alone, on the LLM API."""
    return {"target": _hub(repository), "speculation": {"method": "None"}, **spec}


def eagle3(head: str = "testbed/llama-eagle3", **spec: Any) -> JsonObject:
    """Return the spec of an EAGLE-3 pair."""
    return {
        "target": _hub("testbed/llama"),
        "draft": _hub(head),
        "speculation": {"method": "Eagle3", "maxDraftTokens": 3},
        **spec,
    }


def draft_target(draft: str = "testbed/llama-small", **spec: Any) -> JsonObject:
    """Return the spec of a draft and a target with engines and a GPU each."""
    return {
        "target": _hub("testbed/llama"),
        "draft": _hub(draft),
        "speculation": {"method": "DraftTarget", "maxDraftTokens": 4},
        "placement": {"gpu": {"product": PRODUCT}},
        **spec,
    }


def engine(repository: str = "testbed/llama", **spec: Any) -> JsonObject:
    """Return the spec of a target alone, with an engine."""
    return {
        "target": _hub(repository),
        "speculation": {"method": "None"},
        "runtime": {"backend": "TensorRTEngine"},
        "placement": {"gpu": {"product": PRODUCT}},
        **spec,
    }


def _hub(repository: str) -> JsonObject:
    return {"source": {"huggingFace": {"repository": repository}}}


def condition(model: JsonObject, kind: str) -> JsonObject:
    """Return a condition; an empty one if it is not there."""
    found = [c for c in model.get("status", {}).get("conditions", []) if c["type"] == kind]
    return found[0] if found else {}


def current(model: JsonObject) -> bool:
    """Whether a status speaks of the spec as it is."""
    return bool(model.get("status", {}).get("observedGeneration", -1) == model["metadata"]["generation"])


@dataclass
class Scene:
    """One namespace.

    Attributes:
        api: the API server as its administrator, under the field manager `user`.
        namespace: its name.
        script: what the Jobs in it come to.
    """

    api: HttpKubernetesApi
    namespace: str
    script: Script

    async def apply(self, name: str, spec: JsonObject, *, annotations: dict[str, str] | None = None) -> JsonObject:
        """Apply a model, as kubectl would."""
        metadata = {"name": name, "namespace": self.namespace, "annotations": annotations or {}}
        body = {"apiVersion": "specdec.dev/v1alpha1", "kind": "SpeculativeModel", "metadata": metadata, "spec": spec}
        return await self.api.apply(SPECULATIVE_MODELS, body, force=True)

    async def get(self, resource: ResourceType, name: str) -> JsonObject:
        return await self.api.get(resource, namespace=self.namespace, name=name)

    async def find(self, resource: ResourceType, name: str) -> JsonObject | None:
        """Return an object; None if there is none."""
        with contextlib.suppress(NotFound):
            return await self.get(resource, name)
        return None

    async def model(self, name: str) -> JsonObject:
        return await self.get(SPECULATIVE_MODELS, name)

    async def deployment(self, model: str) -> JsonObject:
        return await self.get(DEPLOYMENTS, serving_name(model))

    async def objects(self, resource: ResourceType, *, labels: str = "") -> list[JsonObject]:
        return await self.api.list(resource, namespace=self.namespace, label_selector=labels)

    async def names(self, resource: ResourceType, *, prefix: str = "") -> list[str]:
        """Return the names of a namespace's objects in their order."""
        return sorted(
            o["metadata"]["name"] for o in await self.objects(resource) if o["metadata"]["name"].startswith(prefix)
        )

    async def jobs(self, prefix: str = "") -> list[str]:
        return await self.names(JOBS, prefix=prefix)

    async def artifact(self, role: str, model: str) -> JsonObject:
        """Return the artifact that a model uses in a role, once it does."""
        used: dict[str, str] = {}

        async def uses() -> bool:
            used.update({a["role"]: a["name"] for a in (await self.model(model))["status"]["artifacts"]})
            return role in used

        await self.until(f"{model}: an artifact as its {role}", uses, seen=model)
        return await self.get(MODEL_ARTIFACTS, used[role])

    async def serving_pods(self, model: str) -> list[JsonObject]:
        return await self.objects(PODS, labels=f"specdec.dev/model={model}")

    async def gpu_pods(self) -> list[JsonObject]:
        """Return the pods that ask for GPUs."""
        return [
            pod
            for pod in await self.objects(PODS)
            if any("nvidia.com/gpu" in c["resources"].get("limits", {}) for c in pod["spec"]["containers"])
        ]

    async def revisions(self, model: str) -> list[JsonObject]:
        found = await self.objects(CONTROLLER_REVISIONS, labels=f"specdec.dev/model={model}")
        return sorted(found, key=lambda revision: revision["revision"])

    async def events(self, model: str) -> list[JsonObject]:
        """Return the Events about a model that the operator wrote."""
        found = await self.objects(EVENTS)
        return [
            e
            for e in found
            if e["regarding"]["name"] == model and e.get("reportingController") == "specdec.dev/operator"
        ]

    async def delete(self, resource: ResourceType, name: str) -> None:
        await self.api.delete(resource, namespace=self.namespace, name=name)

    async def patch(self, resource: ResourceType, name: str, patch: JsonObject, *, subresource: str = "") -> JsonObject:
        return await self.api.patch_merge(
            resource, namespace=self.namespace, name=name, patch=patch, subresource=subresource or None
        )

    async def until(
        self, what: str, holds: Callable[[], Awaitable[bool]], *, seconds: float = SECONDS, seen: str = ""
    ) -> None:
        """Wait until something holds; fail with what was waited for."""
        deadline = time.monotonic() + seconds
        while not await holds():
            if time.monotonic() > deadline:
                raise AssertionError(f"not within {seconds:g} s: {what}; {await self._seen(seen)}")
            await asyncio.sleep(POLL_SECONDS)

    async def until_condition(
        self, model: str, kind: str, status: str, *, reason: str = "", seconds: float = SECONDS
    ) -> JsonObject:
        """Wait until a condition of the current generation has a status and, if given, a reason; return the model."""
        found: JsonObject = {}

        async def holds() -> bool:
            nonlocal found
            found = await self.model(model)
            it = condition(found, kind)
            return current(found) and it.get("status") == status and reason in ("", it["reason"])

        await self.until(f"{model}: {kind}={status} {reason}", holds, seconds=seconds, seen=model)
        return found

    async def until_ready(self, model: str, *, seconds: float = SECONDS) -> JsonObject:
        return await self.until_condition(model, "Ready", "True", seconds=seconds)

    async def until_stalled(self, model: str, reason: str) -> JsonObject:
        return await self.until_condition(model, "Stalled", "True", reason=reason)

    async def until_event(self, model: str, reason: str, *, kind: str = "Warning") -> JsonObject:
        """Wait for an Event about a model."""
        found: list[JsonObject] = []

        async def holds() -> bool:
            found[:] = [e for e in await self.events(model) if e["reason"] == reason and e["type"] == kind]
            return bool(found)

        await self.until(f"{model}: Event {kind} {reason}", holds, seconds=10)
        return found[0]

    async def until_gone(self, resource: ResourceType, name: str) -> None:
        async def gone() -> bool:
            return await self.find(resource, name) is None

        await self.until(f"{resource.kind} {name} gone", gone)

    async def until_replaced(self, resource: ResourceType, old: JsonObject) -> JsonObject:
        """Wait until an object of the same name with another uid is there."""
        found: JsonObject = {}

        async def replaced() -> bool:
            nonlocal found
            found = await self.find(resource, old["metadata"]["name"]) or {}
            return bool(found) and found["metadata"]["uid"] != old["metadata"]["uid"]

        await self.until(f"{resource.kind} {old['metadata']['name']} made anew", replaced)
        return found

    async def _seen(self, model: str) -> str:
        if not model:
            return ""
        status = (await self.model(model)).get("status", {})
        said = [f"{c['type']}={c['status']}/{c['reason']}: {c['message']}" for c in status.get("conditions", [])]
        return f"jobs {await self.jobs()}; " + "; ".join(said)


@dataclass
class Stage:
    """What the tests of one module share: a cluster, an operator, and who plays the pods.

    Attributes:
        operator: the running operator; None while a module runs its own.
        scenes: the namespaces so far.
    """

    cluster: Cluster
    api: HttpKubernetesApi
    player: JobPlayer
    prover: ScriptedProver
    operator: InProcessOperator | None = None
    scenes: list[Scene] = field(default_factory=list)

    async def scene(self, namespace: str, *, volumes: int = 1) -> Scene:
        """Make a namespace, with a volume for each of its claims: one without takes another namespace's."""
        await self.api.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        for name in (namespace, *(f"{namespace}-{number}" for number in range(1, volumes)))[:volumes]:
            await self.api.create(VOLUMES, _volume(name))
        scene = Scene(self.api, namespace, self.player.script(namespace))
        self.scenes.append(scene)
        return scene

    async def remove_models(self) -> None:
        """Remove the models, so that the next module's operator finds none; the garbage collector takes the rest."""
        for scene in self.scenes:
            for name in await scene.names(SPECULATIVE_MODELS):
                await scene.delete(SPECULATIVE_MODELS, name)


@contextlib.asynccontextmanager
async def stage(cluster: Cluster) -> AsyncIterator[Stage]:
    """Open the administrator's session and start the player of Jobs; no operator runs yet."""
    credentials = kubeconfig_credentials(cluster.kubeconfig)
    async with open_session(credentials) as session:
        api = HttpKubernetesApi(session, credentials.server, field_manager="user")
        with contextlib.suppress(AlreadyExists):
            await api.create(STORAGE_CLASSES, _storage_class())
        player = JobPlayer(api)
        playing = asyncio.create_task(player.run(), name="job-player")
        made = Stage(cluster, api, player, ScriptedProver())
        try:
            yield made
        finally:
            await made.remove_models()
            playing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await playing


def _storage_class() -> JsonObject:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "testbed", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": "kubernetes.io/no-provisioner",
    }


def _volume(name: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "100Gi"},
            "accessModes": ["ReadWriteOnce", "ReadWriteMany"],
            "storageClassName": "testbed",
            "hostPath": {"path": f"/nowhere/{name}"},
        },
    }

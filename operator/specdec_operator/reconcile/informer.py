"""kopf as informer: every event that matters becomes a key in the queue, and nothing else.

Handlers decide nothing but that; what a run does comes from the live state, not from what an event said. kopf writes
nothing to any object this way. Events that are lost are made up for by the resync.
"""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Any

import kopf

from specdec_operator.api.v1alpha1 import GROUP, VERSION
from specdec_operator.reconcile.endpoints import FOREIGN_SLICES, SERVICE_NAME
from specdec_operator.reconcile.queue import Key, owning_models
from specdec_operator.reconcile.relevance import is_relevant
from specdec_operator.resources.labels import ARTIFACT, MODEL, SELECTOR, model_of_service

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from specdec_operator.cluster.api import JsonObject
    from specdec_operator.cluster.login import LoginHandler
    from specdec_operator.reconcile.own_writes import OwnWrites
    from specdec_operator.reconcile.queue import WorkQueue

CHILDREN: tuple[tuple[str, str, str], ...] = (
    ("", "v1", "pods"),
    ("", "v1", "services"),
    ("", "v1", "configmaps"),
    ("apps", "v1", "deployments"),
    ("apps", "v1", "controllerrevisions"),
    ("batch", "v1", "jobs"),
)
"""What the operator makes and watches: group, version, plural."""
SLICES = ("discovery.k8s.io", "v1", "endpointslices")
"""What others may make for a Service of the operator's: of these it watches those that Kubernetes does not keep."""


class _Patience:
    """Seconds before each further try of a request of kopf's, without an end.

    A watch that is given up ends the process. A right that is missing in one namespace must not end the work in the
    others, and one that comes must be noticed.
    """

    def __iter__(self) -> Iterator[float]:
        yield from (1, 2, 4, 8)
        yield from repeat(15.0)


class _NothingToCompare(kopf.DiffBaseStorage):
    """What kopf keeps of an object to find out what changed, which no handler here asks: it would copy each twice."""

    def build(self, *, body: kopf.Body, extra_fields: Iterable[kopf.FieldSpec] | None = None) -> kopf.BodyEssence:
        del body, extra_fields
        return kopf.BodyEssence()

    def fetch(self, *, body: kopf.Body) -> kopf.BodyEssence | None:
        del body
        return None

    def store(self, *, body: kopf.Body, patch: kopf.Patch, essence: kopf.BodyEssence) -> None:
        del body, patch, essence


def informer_registry(queue: WorkQueue, *, login: LoginHandler, own_writes: OwnWrites) -> kopf.OperatorRegistry:
    """Handlers that add keys to the queue."""
    registry = kopf.OperatorRegistry()
    kopf.on.login(registry=registry)(login)

    async def model_seen(**event: Any) -> None:
        for key in keys_of_model(event["type"], event["body"], own_writes=own_writes):
            queue.add(key)

    async def artifact_seen(**event: Any) -> None:
        for key in keys_of_artifact(event["type"], event["body"], own_writes=own_writes):
            queue.add(key)

    async def child_seen(**event: Any) -> None:
        for key in keys_of_child(event["type"], event["body"], plural=event["resource"].plural):
            queue.add(key)

    async def slice_seen(**event: Any) -> None:
        for key in keys_of_slice(event["body"]):
            queue.add(key)

    kopf.on.event(*SLICES, registry=registry)(slice_seen)
    kopf.on.event(GROUP, VERSION, "speculativemodels", registry=registry)(model_seen)
    kopf.on.event(GROUP, VERSION, "modelartifacts", registry=registry)(artifact_seen)
    for group, version, plural in CHILDREN:
        kopf.on.event(group, version, plural, registry=registry)(child_seen)
    return registry


def keys_of_model(event: str | None, model: JsonObject, *, own_writes: OwnWrites) -> list[Key]:
    """What to run for a model that was seen: nothing if it is as this process wrote it.

    Args:
        event: the watch event's type; None for what was there when the watch began.
        model: the object.
        own_writes: what this process wrote.
    """
    metadata = model["metadata"]
    if _is_news(event, metadata, own_writes):
        return [Key(kind="SpeculativeModel", namespace=metadata["namespace"], name=metadata["name"])]
    return []


def keys_of_artifact(event: str | None, artifact: JsonObject, *, own_writes: OwnWrites) -> list[Key]:
    """What to run for an artifact that was seen: its models, and itself unless it is as this process wrote it.

    Args:
        event: the watch event's type; None for what was there when the watch began.
        artifact: the object.
        own_writes: what this process wrote.
    """
    metadata = artifact["metadata"]
    models = owning_models(metadata["namespace"], metadata.get("ownerReferences") or ())
    if not _is_news(event, metadata, own_writes):
        return models
    return [Key(kind="ModelArtifact", namespace=metadata["namespace"], name=metadata["name"]), *models]


def keys_of_child(event: str | None, child: JsonObject, *, plural: str) -> list[Key]:
    """What to run for a child that was seen: whose it is, if it is gone or its state matters.

    Args:
        event: the watch event's type; None for what was there when the watch began.
        child: the object.
        plural: its resource.
    """
    if event != "DELETED" and not is_relevant(plural, child):
        return []
    namespace, labels = child["metadata"]["namespace"], child["metadata"].get("labels") or {}
    keys = []
    if MODEL in labels:
        keys.append(Key(kind="SpeculativeModel", namespace=namespace, name=labels[MODEL]))
    if ARTIFACT in labels:
        keys.append(Key(kind="ModelArtifact", namespace=namespace, name=labels[ARTIFACT]))
    return keys


def keys_of_slice(item: JsonObject) -> list[Key]:
    """What to run for an EndpointSlice that Kubernetes does not keep: the model whose Service it may be of."""
    metadata = item["metadata"]
    model = model_of_service((metadata.get("labels") or {}).get(SERVICE_NAME, ""))
    return [Key(kind="SpeculativeModel", namespace=metadata["namespace"], name=model)] if model else []


def informer_settings(*, watch_list: bool) -> kopf.OperatorSettings:
    """Kopf's settings for an informer.

    Args:
        watch_list: Whether the API server streams initial lists (Kubernetes 1.34 and newer); one that does not would
            refuse the watch.
    """
    settings = kopf.OperatorSettings()
    settings.scanning.disabled = True
    settings.posting.enabled = False
    settings.peering.standalone = True
    settings.queueing.worker_limit = 200
    settings.queueing.idle_timeout = 0.05
    settings.queueing.exit_timeout = 2
    settings.watching.chunk_size = 500
    settings.watching.initial_streaming = watch_list
    settings.watching.connect_timeout = 10
    settings.watching.server_timeout = 300
    settings.networking.connect_timeout = 10
    settings.networking.request_timeout = 30
    settings.networking.error_backoffs = _Patience()
    settings.networking.enforce_retry_after = True
    settings.process.ultimate_exiting_timeout = 25
    settings.persistence.finalizer = "specdec.dev/finalizer"
    settings.persistence.diffbase_storage = _NothingToCompare()
    for group, version, plural in CHILDREN:
        # Filtered by the API server: other people's pods are never sent.
        settings.watching.label_selectors[group, version, plural] = SELECTOR
    settings.watching.label_selectors[SLICES] = FOREIGN_SLICES
    return settings


def _is_news(event: str | None, metadata: Mapping[str, Any], own_writes: OwnWrites) -> bool:
    if event == "DELETED":
        own_writes.forget(metadata)
    # A watch that begins anew has seen nothing of what went meanwhile, such as a child.
    return event in (None, "DELETED") or not own_writes.made(metadata)

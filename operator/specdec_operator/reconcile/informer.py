"""kopf as informer: every event becomes a key in the queue, and nothing else.

Handlers decide nothing and can't fail; what an event said is not used, only which object it was about. kopf writes
nothing to any object this way. Events that are lost are made up for by the resync.
"""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Any

import kopf

from specdec_operator.api.v1alpha1 import GROUP, VERSION
from specdec_operator.reconcile.queue import Key, owning_models
from specdec_operator.resources.labels import ARTIFACT, MODEL, SELECTOR

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from specdec_operator.cluster.login import LoginHandler
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


class _Patience:
    """Seconds before each further try of a request of kopf's, without an end.

    A watch that is given up ends the process. A right that is missing in one namespace must not end the work in the
    others, and one that comes must be noticed.
    """

    def __iter__(self) -> Iterator[float]:
        yield from (1, 2, 4, 8)
        yield from repeat(15.0)


def informer_registry(queue: WorkQueue, *, login: LoginHandler) -> kopf.OperatorRegistry:
    """Handlers that add keys to the queue."""
    registry = kopf.OperatorRegistry()
    kopf.on.login(registry=registry)(login)

    async def model_seen(namespace: str | None, name: str | None, **_: Any) -> None:
        queue.add(Key(kind="SpeculativeModel", namespace=namespace or "", name=name or ""))

    async def artifact_seen(namespace: str | None, name: str | None, meta: Mapping[str, Any], **_: Any) -> None:
        queue.add(Key(kind="ModelArtifact", namespace=namespace or "", name=name or ""))
        for owner in owning_models(namespace or "", meta.get("ownerReferences") or ()):
            queue.add(owner)

    async def child_seen(namespace: str | None, labels: Mapping[str, str], **_: Any) -> None:
        for key in keys_of_labels(namespace or "", labels):
            queue.add(key)

    kopf.on.event(GROUP, VERSION, "speculativemodels", registry=registry)(model_seen)
    kopf.on.event(GROUP, VERSION, "modelartifacts", registry=registry)(artifact_seen)
    for group, version, plural in CHILDREN:
        kopf.on.event(group, version, plural, registry=registry)(child_seen)
    return registry


def keys_of_labels(namespace: str, labels: Mapping[str, str]) -> list[Key]:
    """Whose child an object is, by its labels."""
    keys = []
    if MODEL in labels:
        keys.append(Key(kind="SpeculativeModel", namespace=namespace, name=labels[MODEL]))
    if ARTIFACT in labels:
        keys.append(Key(kind="ModelArtifact", namespace=namespace, name=labels[ARTIFACT]))
    return keys


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
    for group, version, plural in CHILDREN:
        # Filtered by the API server: other people's pods are never sent.
        settings.watching.label_selectors[group, version, plural] = SELECTOR
    return settings

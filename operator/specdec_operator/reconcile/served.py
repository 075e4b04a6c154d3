"""Waiting for the API server to serve the operator's kinds: kopf would never look for them again."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING

from specdec_operator.cluster.errors import NotFound
from specdec_operator.cluster.resources import MODEL_ARTIFACTS, SPECULATIVE_MODELS

if TYPE_CHECKING:
    from specdec_operator.cluster.api import KubernetesApi
    from specdec_operator.cluster.resources import ResourceType

LOOK_AGAIN_SECONDS = 3.0

_log = logging.getLogger(__name__)


async def until_served(api: KubernetesApi, *, namespace: str | None, stop: asyncio.Event) -> None:
    """Return once both kinds are served, or when asked to stop.

    Args:
        namespace: One that may be listed; None for all of them.
    """
    waited = False
    while not stop.is_set():
        missing = [r for r in (SPECULATIVE_MODELS, MODEL_ARTIFACTS) if not await _is_served(api, r, namespace)]
        if not missing and not waited:
            return
        # A kind that has just come may not be in the API server's discovery yet, which is where kopf looks.
        waited = bool(missing)
        if missing:
            names = ", ".join(resource.qualified_name for resource in missing)
            _log.warning("the API server does not serve %s: apply the crds/ of this operator's release", names)
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_AGAIN_SECONDS):
                await stop.wait()


async def _is_served(api: KubernetesApi, resource: ResourceType, namespace: str | None) -> bool:
    try:
        await api.list(resource, namespace=namespace)
    except NotFound:
        return False
    return True

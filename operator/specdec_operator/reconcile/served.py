"""Waiting for the API server to serve the operator's kinds: kopf would never look for them again."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING

from specdec_operator.api.v1alpha1 import GROUP, VERSION
from specdec_operator.cluster.errors import Forbidden, NotFound
from specdec_operator.cluster.resources import MODEL_ARTIFACTS, SPECULATIVE_MODELS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from specdec_operator.cluster.api import Documents
    from specdec_operator.cluster.resources import ResourceType

LOOK_AGAIN_SECONDS = 3.0
DISCOVERY = f"/apis/{GROUP}/{VERSION}"

_log = logging.getLogger(__name__)


async def until_served(documents: Documents, *, stop: asyncio.Event, missing_changed: Callable[[str], None]) -> None:
    """Return once both kinds are served, or when asked to stop.

    Args:
        missing_changed: Told why nothing can be done yet, with the remedy; empty once that is over.
    """
    waited, told = False, ""
    while not stop.is_set():
        missing = await _unserved(documents)
        if not missing and not waited:
            break
        # A kind that has just come may not be in every API server's discovery yet, which is where kopf looks.
        waited = bool(missing)
        said = _said(missing)
        if said and said != told:
            _log.warning("%s", said)
            missing_changed(said)
            told = said
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_AGAIN_SECONDS):
                await stop.wait()
    missing_changed("")


def _said(missing: Sequence[ResourceType]) -> str:
    if not missing:
        return ""
    names = ", ".join(resource.qualified_name for resource in missing)
    return (
        f"the API server does not serve {names}: apply the crds/ of this operator's release "
        "(kubectl apply --server-side -f crds/)"
    )


async def _unserved(documents: Documents) -> list[ResourceType]:
    """The operator's kinds that discovery does not list: it is open to every account, whatever else is not."""
    try:
        listed = {each["name"] for each in (await documents.read_document(DISCOVERY)).get("resources") or ()}
    except NotFound:
        listed = set()
    except Forbidden:
        # A cluster that closes discovery closes it to kopf too, which then says so.
        return []
    return [resource for resource in (SPECULATIVE_MODELS, MODEL_ARTIFACTS) if resource.plural not in listed]

"""The claims that hold models and engines: the store's own is made, the others are looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specdec_operator.cluster.errors import AlreadyExists, NotFound
from specdec_operator.cluster.resources import PERSISTENT_VOLUME_CLAIMS
from specdec_operator.resources.workload import store_claim

if TYPE_CHECKING:
    from collections.abc import Iterable

    from specdec_operator.api.v1alpha1.storage import StorageClaim
    from specdec_operator.cluster.api import JsonObject, KubernetesApi

_MANY_NODES = frozenset({"ReadWriteMany", "ReadOnlyMany"})


async def ensure_store(api: KubernetesApi, claim: StorageClaim, *, namespace: str) -> None:
    """Make the store's claim, if there is none of that name; one that is there is left as it is.

    Raises:
        ApiError: The API server refuses it.
    """
    try:
        await api.get(PERSISTENT_VOLUME_CLAIMS, namespace=namespace, name=claim.claim_name)
    except NotFound:
        try:
            await api.create(PERSISTENT_VOLUME_CLAIMS, store_claim(claim, namespace=namespace))
        except AlreadyExists:
            return


async def single_node_claims(api: KubernetesApi, claims: Iterable[str], *, namespace: str) -> frozenset[str]:
    """Those of the claims whose volume one node mounts at a time."""
    found = {}
    for claim in sorted(claims):
        try:
            found[claim] = await api.get(PERSISTENT_VOLUME_CLAIMS, namespace=namespace, name=claim)
        except NotFound:
            continue  # its artifact says so
    return frozenset(name for name, claim in found.items() if _by_one_node(claim))


def _by_one_node(claim: JsonObject) -> bool:
    return not _MANY_NODES & set(claim["spec"].get("accessModes") or [])

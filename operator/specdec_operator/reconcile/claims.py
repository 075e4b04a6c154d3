"""The claims that hold models and engines: the store's own is made, the others are looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specdec_operator.cluster.errors import AlreadyExists, NotFound
from specdec_operator.cluster.resources import PERSISTENT_VOLUME_CLAIMS
from specdec_operator.reconcile.finished_jobs import release_claim
from specdec_operator.reconcile.halt import Halt
from specdec_operator.resources.workload import store_claim

if TYPE_CHECKING:
    from collections.abc import Iterable

    from specdec_operator.api.v1alpha1.storage import StorageClaim
    from specdec_operator.cluster.api import JsonObject, KubernetesApi

_LEAVING_SECONDS = 5.0
_MANY_NODES = frozenset({"ReadWriteMany", "ReadOnlyMany"})


async def ensure_store(api: KubernetesApi, claim: StorageClaim, *, namespace: str) -> str:
    """Make the store's claim, if there is none of that name; one that is there is left as it is. Return its uid.

    Raises:
        ApiError: The API server refuses it.
        Halt: It is being deleted.
    """
    try:
        live = await api.get(PERSISTENT_VOLUME_CLAIMS, namespace=namespace, name=claim.claim_name)
    except NotFound:
        try:
            live = await api.create(PERSISTENT_VOLUME_CLAIMS, store_claim(claim, namespace=namespace))
        except AlreadyExists:
            live = await api.get(PERSISTENT_VOLUME_CLAIMS, namespace=namespace, name=claim.claim_name)
    await _check_staying(api, live)
    return str(live["metadata"]["uid"])


async def _check_staying(api: KubernetesApi, claim: JsonObject) -> None:
    metadata = claim["metadata"]
    if not is_leaving(claim):
        return
    await release_claim(api, metadata["name"], namespace=metadata["namespace"])
    raise Halt("ModelsCached", "ClaimLeaving", leaving_in_words(metadata["name"]), requeue_after=_LEAVING_SECONDS)


def is_leaving(claim: JsonObject) -> bool:
    """Whether a claim is being deleted: pods that run keep it, and no other pod may mount it."""
    return "deletionTimestamp" in claim["metadata"]


def leaving_in_words(claim: str) -> str:
    """That a claim is being deleted, and what to do."""
    return (
        f"claim {claim} is being deleted: Kubernetes keeps it while pods that mount it run, and starts no other one. "
        "What serves goes on until its pods stop. To let the claim go, set spec.suspend on the models that use it "
        "until it is gone; then a store is made again, models are downloaded and engines built"
    )


async def single_node_claims(api: KubernetesApi, claims: Iterable[str], *, namespace: str) -> frozenset[str]:
    """Those of the claims whose volume one node mounts at a time.

    Raises:
        Halt: A claim is being deleted.
    """
    found = {}
    for claim in sorted(claims):
        try:
            found[claim] = await api.get(PERSISTENT_VOLUME_CLAIMS, namespace=namespace, name=claim)
        except NotFound:
            continue  # its artifact says so
        await _check_staying(api, found[claim])
    return frozenset(name for name, claim in found.items() if _by_one_node(claim))


def _by_one_node(claim: JsonObject) -> bool:
    return not _MANY_NODES & set(claim["spec"].get("accessModes") or [])

"""Whether the API server would take a pod, asked before one that serves goes for it."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from specdec_operator.api.quantities import amount
from specdec_operator.cluster.errors import BadRequest, Forbidden
from specdec_operator.cluster.resources import PODS
from specdec_operator.reconcile.refused_write import explain

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from specdec_operator.cluster.api import JsonObject, KubernetesApi

_QUOTA = re.compile(
    r"exceeded quota: \S+, requested: (?P<requested>\S+), used: (?P<used>\S+), limited: (?P<limited>\S+)"
)
_COUNTED = frozenset({"pods", "count/pods"})
_BARE_REQUESTS = frozenset({"cpu", "memory", "ephemeral-storage"})


async def try_pod(api: KubernetesApi, wanted: JsonObject, *, running: JsonObject) -> None:
    """Have a pod of a Deployment judged by all admission rules without making it.

    Args:
        api: the API server.
        wanted: the Deployment as it is to be.
        running: the Deployment as it is: one of its pods goes before a new one comes, and frees what it asked for.

    Raises:
        Forbidden: a class, an account or room in a quota is missing, or another rule refuses the pod.
        Invalid: Kubernetes does not accept the pod.
        BadRequest: the same.
    """
    template, leaving = wanted["spec"]["template"], running["spec"]["template"]
    name = {"namespace": wanted["metadata"]["namespace"], "name": f"{wanted['metadata']['name']}-trial"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {**template["metadata"], **name}, "spec": template["spec"]}
    try:
        await api.create(PODS, pod, dry_run=True)
    except Forbidden as refused:
        # Without the right to ask, the pod is made and judged as before.
        if explain(refused).reason == "OperatorForbidden" or fits_then(refused.message, template, leaving):
            return
        raise
    except BadRequest as refused:
        # A webhook that knows no dry run has said nothing about the pod.
        if "does not support dry run" not in refused.message:
            raise


def fits_then(refusal: str, template: JsonObject, leaving: JsonObject) -> bool:
    """Whether a quota that refuses a pod has room for it once another pod is gone. Pure."""
    exceeded = _QUOTA.search(refusal)
    if exceeded is None or _priority(template) != _priority(leaving):
        # A quota may count the pods of one priority alone.
        return False
    requested, used, limited = (_amounts(exceeded[part]) for part in ("requested", "used", "limited"))
    return all(used[name] - _asked(leaving, name) + requested[name] <= limit for name, limit in limited.items())


def _priority(template: JsonObject) -> str:
    return str(template["spec"].get("priorityClassName") or "")


def _amounts(listed: str) -> dict[str, Decimal]:
    pairs = (pair.partition("=") for pair in listed.split(","))
    return {name: amount(value) for name, _, value in pairs}


def _asked(template: JsonObject, name: str) -> Decimal:
    """What a pod counts for under a quota's name for it; the most that is asked for at one time."""
    if name in _COUNTED:
        return Decimal(1)
    part, _, resource = name.partition(".")
    if part not in ("requests", "limits"):
        part, resource = "requests", name if name in _BARE_REQUESTS else ""
    spec = template["spec"]
    together = sum(_of(spec["containers"], part, resource), Decimal())
    return max([together, *_of(spec.get("initContainers") or (), part, resource)])


def _of(containers: Iterable[Mapping[str, Any]], part: str, resource: str) -> list[Decimal]:
    return [amount((c.get("resources") or {}).get(part, {}).get(resource, "0")) for c in containers]

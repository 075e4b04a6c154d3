"""Whether another operator writes a model's status: there is one writer, and it is not this process then."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from specdec_operator.cluster.errors import Forbidden, NotFound
from specdec_operator.cluster.resources import LEASES

if TYPE_CHECKING:
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModel
    from specdec_operator.cluster.api import JsonObject
    from specdec_operator.reconcile.context import Context

LOOK_AGAIN_SECONDS = 30.0
_CLOCK_SLACK = timedelta(seconds=15)


async def other_controller(context: Context, model: SpeculativeModel) -> str:
    """The other operator that writes a model's status, as namespace/release; empty if none does.

    One whose Lease is gone, has ended, or may not be read counts for nothing: its models are taken over.
    """
    named = model.status.controller
    namespace, _, name = named.partition("/")
    if named in ("", context.configuration.instance) or not name:
        return ""
    try:
        lease = await context.api.get(LEASES, namespace=namespace, name=name)
    except (NotFound, Forbidden):
        return ""
    return named if _is_held(lease, context.now()) else ""


async def announce_other(context: Context, live: JsonObject, other: str) -> None:
    """Say on the model that this operator leaves it alone."""
    note = (
        f"operator {other} writes this model's status and is alive, so operator {context.configuration.instance} "
        "leaves the model alone: let only one of them watch this namespace"
    )
    await context.events.record(live, kind="Warning", reason="OtherController", note=note, action="Reconcile")


def _is_held(lease: JsonObject, now: datetime) -> bool:
    spec = lease.get("spec") or {}
    if not spec.get("holderIdentity") or not spec.get("renewTime"):
        return False
    ends = datetime.fromisoformat(spec["renewTime"]) + timedelta(seconds=spec.get("leaseDurationSeconds") or 0)
    return now < ends + _CLOCK_SLACK

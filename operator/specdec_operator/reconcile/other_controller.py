"""Whether another operator writes a model's status: there is one writer, and it is not this process then."""

from __future__ import annotations

from dataclasses import dataclass
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


@dataclass(frozen=True, kw_only=True)
class OtherController:
    """Another operator that writes a model's status.

    Attributes:
        instance: Its name, as namespace/release.
        unseen: Why it is not known whether it is alive; empty if it is known to be.
    """

    instance: str
    unseen: str = ""


async def other_controller(context: Context, model: SpeculativeModel) -> OtherController | None:
    """The other operator that writes a model's status; None if none does.

    The models of one whose Lease is gone or has ended are taken over. One whose Lease may not be read counts as alive:
    two that take each other for gone would write against each other without end.
    """
    named = model.status.controller
    namespace, _, name = named.partition("/")
    if named in ("", context.configuration.instance) or not name:
        return None
    try:
        lease = await context.api.get(LEASES, namespace=namespace, name=name)
    except NotFound:
        return None
    except Forbidden:
        return OtherController(instance=named, unseen=f"its Lease {named} may not be read (grant get on leases)")
    return OtherController(instance=named) if _is_held(lease, context.now()) else None


async def announce_other(context: Context, live: JsonObject, other: OtherController) -> None:
    """Say on the model that this operator leaves it alone."""
    alive = f"may be alive: {other.unseen}" if other.unseen else "is alive"
    note = (
        f"operator {other.instance} writes this model's status and {alive}. Operator {context.configuration.instance} "
        "leaves the model alone: let only one of them watch this namespace"
    )
    await context.events.record(live, kind="Warning", reason="OtherController", note=note, action="Reconcile")


def _is_held(lease: JsonObject, now: datetime) -> bool:
    spec = lease.get("spec") or {}
    if not spec.get("holderIdentity") or not spec.get("renewTime"):
        return False
    ends = datetime.fromisoformat(spec["renewTime"]) + timedelta(seconds=spec.get("leaseDurationSeconds") or 0)
    return now < ends + _CLOCK_SLACK

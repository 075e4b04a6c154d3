"""A model that does not fit this operator's schema: said in status as well as it can be, and left as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import ValidationError

from specdec_operator.api.v1alpha1.metadata import ObjectMeta
from specdec_operator.api.v1alpha1.status import SpeculativeModelStatus
from specdec_operator.cluster.resources import SPECULATIVE_MODELS
from specdec_operator.reconcile.conditions import Conditions
from specdec_operator.reconcile.context import timestamp
from specdec_operator.reconcile.model_status import written
from specdec_operator.reconcile.status_write import write_status

if TYPE_CHECKING:
    from specdec_operator.cluster.api import JsonObject
    from specdec_operator.reconcile.context import Context

_SHOWN = 5


async def refuse_unreadable(context: Context, document: JsonObject, error: ValidationError) -> None:
    """Write Accepted=False/InvalidSpec; what serves is not touched."""
    metadata = ObjectMeta.model_validate(document["metadata"])
    status = _status(document)
    conditions = Conditions(status.conditions, generation=metadata.generation, now=timestamp(context.now()))
    message = _message(error)
    conditions.set("Accepted", "False", "InvalidSpec", message)
    conditions.set("Ready", "False", "InvalidSpec", message)
    conditions.set("Stalled", "True", "InvalidSpec", message)
    context.gauges.conditions(namespace=metadata.namespace, name=metadata.name, conditions=conditions.in_order())
    said = status.model_copy(
        update={
            "observed_generation": metadata.generation,
            "conditions": conditions.in_order(),
            "controller": context.configuration.instance,
        }
    )
    await write_status(context, SPECULATIVE_MODELS, written(said), live=document)
    if conditions.changed():
        await context.events.record(
            document, kind="Warning", reason="InvalidSpec", note=f"Accepted=False: {message}", action="Reconcile"
        )


def _status(document: JsonObject) -> SpeculativeModelStatus:
    try:
        return SpeculativeModelStatus.model_validate(document.get("status") or {})
    except ValidationError:
        return SpeculativeModelStatus(conditions=[])


def _message(error: ValidationError) -> str:
    found = [f"{'.'.join(str(part) for part in e['loc'])}: {e['msg']}" for e in error.errors()]
    more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return (
        f"{'; '.join(found[:_SHOWN])}{more}. The cluster's CRD and this operator are of different versions: apply the "
        "crds/ of the operator's release, or change the fields"
    )

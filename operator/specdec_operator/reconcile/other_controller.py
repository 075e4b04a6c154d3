"""Whether another operator writes a model's status: there is one writer, and it is not this process then."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from specdec_operator.cluster.errors import Forbidden, NotFound
from specdec_operator.cluster.resources import LEASES, SPECULATIVE_MODELS
from specdec_operator.reconcile.model_status import written
from specdec_operator.reconcile.status_write import write_status

if TYPE_CHECKING:
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModel
    from specdec_operator.cluster.api import JsonObject
    from specdec_operator.reconcile.context import Context, Gauges
    from specdec_operator.reconcile.queue import Key

LOOK_AGAIN_SECONDS = 30.0
_CLOCK_SLACK = timedelta(seconds=15)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class OtherController:
    """Another operator that writes a model's status.

    Attributes:
        instance: Its name, as namespace/release.
        unseen: Why it is not known whether it is alive; empty if it is known to be.
    """

    instance: str
    unseen: str = ""

    def in_words(self, *, namespace: str, instance: str) -> str:
        """That it writes a model's status, and what to do.

        Args:
            namespace: the model's.
            instance: the operator that leaves the model alone.
        """
        alive = f"may be alive: {self.unseen}" if self.unseen else "is alive"
        return (
            f"operator {self.instance} writes this model's status and {alive}. Operator {instance} leaves the model "
            f"alone: let only one of them watch namespace {namespace} (the value namespaces of their Helm releases, or "
            "the configuration's), or uninstall one. If "
            f"{self.instance} is gone, hand its models over: {take_over(namespace)}"
        )


def take_over(namespace: str) -> str:
    """The command that makes the models of a namespace nobody's, so that the operator that is left takes them."""
    patch = """--subresource=status --type=merge -p '{"status":{"controller":null}}'"""
    return f"kubectl get specmodel -n {namespace} -o name | xargs -I NAME kubectl patch NAME -n {namespace} {patch}"


@dataclass(kw_only=True)
class Responsibility:
    """Which models this process brings on, and which it leaves to other operators: said once each, and shown."""

    gauges: Gauges
    instance: str
    _own: set[Key] = field(default_factory=set)
    _others: dict[Key, str] = field(default_factory=dict)

    def has(self, key: Key) -> bool:
        """Whether a model is this operator's, as last seen."""
        return key in self._own

    def leaves(self, key: Key) -> bool:
        """Whether a model is another operator's, as last seen."""
        return key in self._others

    def take(self, key: Key) -> None:
        """A model is this operator's."""
        self._own.add(key)
        self._no_longer_left(key)

    def leave(self, key: Key, other: OtherController) -> None:
        """A model is another operator's."""
        self._own.discard(key)
        if self._others.get(key) == other.instance:
            return
        self._others[key] = other.instance
        said = other.in_words(namespace=key.namespace, instance=self.instance)
        fields = {"namespace": key.namespace, "object": key.name, "controller": other.instance}
        _log.warning("%s is left alone: %s", key, said, extra=fields)
        self.gauges.other_controller(namespace=key.namespace, name=key.name, controller=other.instance)

    def forget(self, key: Key) -> None:
        """A model is gone."""
        self._own.discard(key)
        self._no_longer_left(key)

    def _no_longer_left(self, key: Key) -> None:
        if other := self._others.pop(key, ""):
            _log.info("%s is no longer left to operator %s", key, other)
            self.gauges.other_controller(namespace=key.namespace, name=key.name, controller="")


async def other_controller(context: Context, named: str) -> OtherController | None:
    """The other operator that writes a model's status; None if none does.

    The models of one whose Lease is gone or has ended are taken over. One whose Lease may not be read counts as alive:
    two that take each other for gone would write against each other without end.

    Args:
        named: The model's status.controller.
    """
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
    note = other.in_words(namespace=live["metadata"]["namespace"], instance=context.configuration.instance)
    await context.events.record(live, kind="Warning", reason="OtherController", note=note, action="Reconcile")


async def claim(context: Context, model: SpeculativeModel, live: JsonObject) -> JsonObject:
    """Write this operator's name on a model before anything is made for it; the model as stored.

    Raises:
        Conflict: Another operator was faster, or the model has changed: read it again.
    """
    status = model.status.model_copy(update={"controller": context.configuration.instance})
    return await write_status(context, SPECULATIVE_MODELS, written(status), live=live)


def _is_held(lease: JsonObject, now: datetime) -> bool:
    spec = lease.get("spec") or {}
    if not spec.get("holderIdentity") or not spec.get("renewTime"):
        return False
    ends = datetime.fromisoformat(spec["renewTime"]) + timedelta(seconds=spec.get("leaseDurationSeconds") or 0)
    return now < ends + _CLOCK_SLACK

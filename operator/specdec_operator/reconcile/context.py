"""What every reconciler needs, made once in the composition root."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from specdec_operator.api.configuration import OperatorConfiguration
    from specdec_operator.api.v1alpha1.status import Condition
    from specdec_operator.cluster.api import JsonObject, KubernetesApi
    from specdec_operator.reconcile.background_proofs import BackgroundProofs
    from specdec_operator.reconcile.definitions import Definitions
    from specdec_operator.reconcile.gpu_nodes import GpuNodes
    from specdec_operator.reconcile.other_controller import Responsibility
    from specdec_operator.reconcile.own_writes import OwnWrites
    from specdec_operator.resources.template import Templates
    from specdec_operator.runtimes.table import CapabilityTable


class Recorder(Protocol):
    """Says something about an object to those who describe it."""

    async def record(self, regarding: JsonObject, *, kind: str, reason: str, note: str, action: str) -> None:
        """Post an Event; never raises."""


class Gauges(Protocol):
    """Figures about models, for those who watch many."""

    def acceptance(self, *, namespace: str, name: str, ratio: float | None) -> None:
        """A model's drafts were accepted at this ratio; None where that is not known or the model is gone."""

    def conditions(self, *, namespace: str, name: str, conditions: Iterable[Condition]) -> None:
        """A model has these conditions and no others; none if it is gone, or another operator's."""

    def other_controller(self, *, namespace: str, name: str, controller: str) -> None:
        """A model is left alone for another operator; empty if it is not."""


@dataclass(frozen=True, kw_only=True)
class Context:
    """The reconcilers' surroundings.

    Attributes:
        now: The wall clock, aware of its time zone.
    """

    api: KubernetesApi
    events: Recorder
    proofs: BackgroundProofs
    gauges: Gauges
    table: CapabilityTable
    configuration: OperatorConfiguration
    templates: Templates
    definitions: Definitions
    gpu_nodes: GpuNodes
    responsibility: Responsibility
    own_writes: OwnWrites
    now: Callable[[], datetime]


def timestamp(moment: datetime) -> str:
    """A time as Kubernetes writes it."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")

"""What to know of a spec that is accepted all the same: it works, but hardly as its author expects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from specdec_operator.api.v1alpha1.speculative_model import default_backend
from specdec_operator.planning.placement import place

if TYPE_CHECKING:
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModelSpec
    from specdec_operator.planning.placement import PodPlacement

USUAL_GPUS: Final = 8
"""The most GPUs that usual nodes have."""


@dataclass(frozen=True)
class Remark:
    """A sentence about a field.

    Attributes:
        path: The field, from `spec` on.
    """

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


def remarks(spec: SpeculativeModelSpec) -> tuple[Remark, ...]:
    """What to know of a spec."""
    placement = place(spec, default_backend(spec))
    if placement.gpus <= USUAL_GPUS or "/mig-" in (spec.placement.gpu.extended_resource or ""):
        return ()
    return (_many_gpus(placement),)


def _many_gpus(placement: PodPlacement) -> Remark:
    path, remedy = "spec.target.parallelism", f"lower it to {USUAL_GPUS} GPUs or fewer"
    if len(placement.models) > 1 and not placement.shared:
        path = "spec.placement"
        remedy = "let the draft share a GPU with the target (draftDevices), or lower target.parallelism"
    message = (
        f"each pod asks for {placement.gpus} GPUs, and usual nodes have no more than {USUAL_GPUS}: without a larger "
        f"node it stays Unschedulable. Where there is none, {remedy}"
    )
    return Remark(path, message)

"""Devices and MPI ranks per model: declared or derived, never typed by hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from specdec_operator.api.v1alpha1.runtime import Backend
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModelSpec


@dataclass(frozen=True, kw_only=True)
class PlacedModel:
    """Where one model runs inside a pod."""

    role: str
    devices: tuple[int, ...]
    participant_ids: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PodPlacement:
    """Where the pair runs inside a pod.

    Attributes:
        models: One entry per model that has GPUs of its own, target first.
        world_size: MPI processes in the pod; 1 where the server starts without MPI.
        orchestrator: Whether rank 0 holds no model and directs the others.
    """

    models: tuple[PlacedModel, ...]
    world_size: int = 1
    orchestrator: bool = False

    @property
    def gpus(self) -> int:
        """GPUs that the pod asks for."""
        return len({device for model in self.models for device in model.devices})

    def of(self, role: str) -> PlacedModel:
        """The placement of the model with that role.

        Raises:
            KeyError: No such role.
        """
        for model in self.models:
            if model.role == role:
                return model
        raise KeyError(role)


def place(spec: SpeculativeModelSpec, backend: Backend) -> PodPlacement:
    """Place a spec's models on devices 0..n-1 of one pod.

    The draft comes first, as in NVIDIA's fast-logits layout: ranks 1..d are the draft's, d+1..d+t the target's, and
    rank 0 directs them (world size 1 + d + t).
    """
    tensor = spec.target.parallelism.tensor
    if backend == "LLMAPI":
        return PodPlacement(models=(PlacedModel(role="target", devices=_declared(spec, tensor, 0)),))
    if spec.speculation.method != "DraftTarget":
        ranks = tuple(range(tensor)) if tensor > 1 else ()
        target = PlacedModel(role="target", devices=_declared(spec, tensor, 0), participant_ids=ranks)
        return PodPlacement(models=(target,), world_size=tensor)
    draft_tensor = spec.draft.parallelism.tensor if spec.draft else 1
    draft_devices = tuple(spec.placement.draft_devices or range(draft_tensor))
    draft = PlacedModel(role="draft", devices=draft_devices, participant_ids=tuple(range(1, 1 + draft_tensor)))
    target = PlacedModel(
        role="target",
        devices=_declared(spec, tensor, draft_tensor),
        participant_ids=tuple(range(1 + draft_tensor, 1 + draft_tensor + tensor)),
    )
    return PodPlacement(models=(target, draft), world_size=1 + draft_tensor + tensor, orchestrator=True)


def _declared(spec: SpeculativeModelSpec, tensor: int, first: int) -> tuple[int, ...]:
    return tuple(spec.placement.target_devices or range(first, first + tensor))

"""Devices and MPI ranks per model: declared or derived, never typed by hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from specdec_operator.api.v1alpha1.runtime import Backend
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModelSpec
    from specdec_operator.runtimes.serving import LogitsTransfer

Orchestration = Literal["Single", "Leader", "Orchestrator", "SpawningOrchestrator"]


@dataclass(frozen=True, kw_only=True)
class PlacedModel:
    """Where one model runs inside a pod: one rank per device, in order."""

    role: str
    devices: tuple[int, ...]
    participant_ids: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PodPlacement:
    """Where the pair runs inside a pod.

    Attributes:
        models: One entry per model that has GPUs of its own, target first.
        world_size: MPI processes that are started with the pod; 1 where the server starts alone or starts the others.
        orchestrator: Whether rank 0 holds no model and directs the others.
        spawns: Whether rank 0 starts the others itself, so that no rank is known before.
        logits_transfer: How draft logits reach the target; None unless the draft is a model on engines.
    """

    models: tuple[PlacedModel, ...]
    world_size: int = 1
    orchestrator: bool = False
    spawns: bool = False
    logits_transfer: LogitsTransfer | None = None

    @property
    def gpus(self) -> int:
        """GPUs that the pod asks for."""
        return len({device for model in self.models for device in model.devices})

    @property
    def shared(self) -> bool:
        """Whether two models have a GPU in common."""
        return self.gpus < sum(len(model.devices) for model in self.models)

    @property
    def processes(self) -> int:
        """Server processes in the pod, those included that others start."""
        ranks = sum(len(model.devices) for model in self.models)
        return max(self.world_size, self.gpus, 1 + ranks if self.spawns else 1)

    @property
    def orchestration(self) -> Orchestration:
        """How the processes find each other."""
        if self.orchestrator:
            return "SpawningOrchestrator" if self.spawns else "Orchestrator"
        return "Leader" if self.world_size > 1 else "Single"

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

    A head runs inside its target. A draft model has devices of its own on engines only; the other backends place it
    beside its target themselves.
    """
    ranks = spec.target.parallelism.ranks
    if backend != "TensorRTEngine":
        return PodPlacement(models=(PlacedModel(role="target", devices=_target_devices(spec, first=0)),))
    if spec.speculation.method == "DraftTarget":
        return _pair(spec)
    participants = tuple(range(ranks)) if ranks > 1 else ()
    target = PlacedModel(role="target", devices=_target_devices(spec, first=0), participant_ids=participants)
    return PodPlacement(models=(target,), world_size=ranks)


def logits_transfer(spec: SpeculativeModelSpec) -> LogitsTransfer:
    """How draft logits reach the target: as declared, or the fastest way that the placement allows."""
    options = spec.speculation.draft_target
    declared = options.logits_transfer if options else None
    return declared or ("Disabled" if spec.placement.shared else "Fast")


def _pair(spec: SpeculativeModelSpec) -> PodPlacement:
    """A draft and a target with an engine each.

    With fast logits every rank is started with the pod: 1..d are the draft's, d+1..d+t the target's, and rank 0 directs
    them (world size 1 + d + t). Else rank 0 starts the others, and no rank is named.
    """
    transfer = logits_transfer(spec)
    drafts = spec.draft.parallelism.ranks if spec.draft else 1
    targets = spec.target.parallelism.ranks
    draft_devices = tuple(spec.placement.draft_devices or range(drafts))
    target_devices = _target_devices(spec, first=drafts)
    if transfer != "Fast":
        models = (
            PlacedModel(role="target", devices=target_devices),
            PlacedModel(role="draft", devices=draft_devices),
        )
        return PodPlacement(models=models, orchestrator=True, spawns=True, logits_transfer=transfer)
    world = 1 + drafts + targets
    models = (
        PlacedModel(role="target", devices=target_devices, participant_ids=tuple(range(1 + drafts, world))),
        PlacedModel(role="draft", devices=draft_devices, participant_ids=tuple(range(1, 1 + drafts))),
    )
    return PodPlacement(models=models, world_size=world, orchestrator=True, logits_transfer=transfer)


def _target_devices(spec: SpeculativeModelSpec, *, first: int) -> tuple[int, ...]:
    return tuple(spec.placement.target_devices or range(first, first + spec.target.parallelism.ranks))

"""Which part an MPI rank plays for one model, by the environment and the model's participant ids."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from testbed.runtime.simulator.errors import RankError

if TYPE_CHECKING:
    from collections.abc import Mapping


class Role(Enum):
    """What a rank does for a model."""

    ALONE = "alone"
    """Loads and serves the engine itself (leader mode with one rank, or an orchestrator that spawns)."""
    LEADER = "leader"
    """Leader mode, several ranks: computes and serves, the others stay attached."""
    ORCHESTRATOR = "orchestrator"
    """Serves the endpoints and sends the work to the participants; loads no engine."""
    PARTICIPANT = "participant"
    """Blocks while the model loads, works for the orchestrator or leader, exits 0 when that shuts down."""
    OUTSIDER = "outsider"
    """Is in no list: finishes loading as if it served, which binds the ports and ends the job."""


@dataclass(frozen=True)
class MpiJob:
    """The MPI job as mpirun's and NVIDIA's variables describe it.

    Attributes:
        identity: same for all ranks of a job, different between jobs.
        rank: of this process, 0 without mpirun.
        size: number of ranks, 1 without mpirun.
        orchestrator: `TRTLLM_ORCHESTRATOR` is set and not 0.
        spawns: `TRTLLM_ORCHESTRATOR_SPAWN_PROCESSES` is not 0.
    """

    identity: str
    rank: int
    size: int
    orchestrator: bool
    spawns: bool

    @classmethod
    def from_environment(cls, environment: Mapping[str, str], *, process: int, namespace: int) -> MpiJob:
        """Read the job.

        Args:
            environment: variables of this process.
            process: tells jobs without mpirun apart.
            namespace: tells containers apart that share a network, where mpirun may number its jobs alike.
        """
        return cls(
            identity=f"{environment.get('PMIX_NAMESPACE', f'process-{process}')}@{namespace}",
            rank=int(environment.get("OMPI_COMM_WORLD_RANK", "0")),
            size=int(environment.get("OMPI_COMM_WORLD_SIZE", "1")),
            orchestrator=environment.get("TRTLLM_ORCHESTRATOR", "0") != "0",
            spawns=environment.get("TRTLLM_ORCHESTRATOR_SPAWN_PROCESSES", "1") != "0",
        )

    @property
    def runs_without_spawning(self) -> bool:
        """Whether this is the orchestrator mode that fast logits need."""
        return self.orchestrator and not self.spawns


@dataclass(frozen=True)
class Assignment:
    """A rank's part for one model.

    Attributes:
        role: what the rank does.
        participants: MPI ranks that hold the engine, in engine-rank order.
        engine_rank: which engine file the rank loads; none for roles that load none.
        fast_logits: whether the transfer from draft to target is really on.
        warnings: lines for the server's log.
    """

    role: Role
    participants: tuple[int, ...]
    engine_rank: int | None
    fast_logits: bool = False
    warnings: tuple[str, ...] = ()


def assign(job: MpiJob, *, participant_ids: tuple[int, ...] | None, engine_ranks: int, fast_logits: bool) -> Assignment:
    """Derive a rank's part.

    Args:
        job: of this process.
        participant_ids: from config.pbtxt.
        engine_ranks: tensor times pipeline parallelism of the engine.
        fast_logits: as the model asks for.

    Raises:
        RankError: participant ids are missing where they are mandatory, or don't fit the engine or the job.
    """
    on = fast_logits and job.runs_without_spawning
    warnings: tuple[str, ...] = ()
    if fast_logits and not on:
        warnings = ("speculative_decoding_fast_logits needs orchestrator mode without spawning processes: disabled.",)
    if job.orchestrator and job.spawns:
        if job.size != 1:
            raise RankError(f"the orchestrator spawns its workers itself: start it with one rank, not {job.size}")
        return Assignment(Role.ALONE, (0,), 0, warnings=warnings)
    if job.orchestrator:
        return _without_spawning(job, participant_ids, engine_ranks, on=on)
    return _leader_mode(job, participant_ids, engine_ranks, warnings)


def _without_spawning(
    job: MpiJob, participant_ids: tuple[int, ...] | None, engine_ranks: int, *, on: bool
) -> Assignment:
    if participant_ids is None:
        raise RankError("Spawning of processes was disabled in orchestrator mode but participant IDs is missing.")
    _check_count(participant_ids, engine_ranks)
    if 0 in participant_ids:
        raise RankError("participant_ids: rank 0 is the orchestrator and can't take part in a model")
    if job.rank == 0:
        return Assignment(Role.ORCHESTRATOR, participant_ids, None, fast_logits=on)
    return _member(job.rank, participant_ids, fast_logits=on)


def _leader_mode(
    job: MpiJob, participant_ids: tuple[int, ...] | None, engine_ranks: int, warnings: tuple[str, ...]
) -> Assignment:
    participants = tuple(range(job.size)) if participant_ids is None else participant_ids
    _check_count(participants, engine_ranks)
    if job.rank == participants[0]:
        role = Role.ALONE if engine_ranks == 1 else Role.LEADER
        return Assignment(role, participants, 0, warnings=warnings)
    return _member(job.rank, participants, fast_logits=False)


def _member(rank: int, participants: tuple[int, ...], *, fast_logits: bool) -> Assignment:
    if rank not in participants:
        warning = f"rank {rank} is in no participant list of this model; the world size may be too big"
        return Assignment(Role.OUTSIDER, participants, None, warnings=(warning,))
    return Assignment(Role.PARTICIPANT, participants, participants.index(rank), fast_logits=fast_logits)


def _check_count(participants: tuple[int, ...], engine_ranks: int) -> None:
    if len(participants) != engine_ranks:
        raise RankError(
            f"MPI size ({len(participants)}: {participants}) is not equal to TP*PP of the engine ({engine_ranks})"
        )


def check_devices(device_ids: tuple[int, ...] | None, *, engine_ranks: int, visible: int) -> tuple[int, ...]:
    """Return the GPU of each engine rank.

    Raises:
        RankError: the list doesn't have one GPU per rank, or names a GPU that is not visible.
    """
    devices = tuple(range(engine_ranks)) if device_ids is None else device_ids
    if len(devices) != engine_ranks:
        raise RankError(f"gpu_device_ids has {len(devices)} entries, but the engine has {engine_ranks} ranks")
    beyond = [device for device in devices if device >= visible]
    if beyond:
        raise RankError(f"gpu_device_ids: invalid device ordinal {beyond[0]}; {visible} GPUs are visible")
    return devices

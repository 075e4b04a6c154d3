"""One model of the engine backend from load to unload, whatever part this rank plays for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from testbed.runtime.simulator.engine import EngineDescription, check_rank, describe_engine
from testbed.runtime.simulator.engine_drafters import decoding_warnings, load_with_drafter
from testbed.runtime.simulator.errors import ParameterError, RequestError
from testbed.runtime.simulator.executor import EngineExecutor
from testbed.runtime.simulator.fast_logits import LogitsShelf, take_logits
from testbed.runtime.simulator.gpus import SimulatedGPU, require_gpus
from testbed.runtime.simulator.ranks import Hello, RankHub, RankLink
from testbed.runtime.simulator.roles import Assignment, MpiJob, Role, assign, check_devices

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from testbed.runtime.simulator.executor import EngineRequest, EngineResult
    from testbed.runtime.simulator.parameters import EngineParameters


@dataclass(frozen=True)
class Surroundings:
    """What a model finds around itself.

    Attributes:
        job: the MPI job.
        environment: the process's variables.
        shm_prefix: of this rank's python backend.
        server: process id of this rank's tritonserver.
        log: writes one line to the server's log.
    """

    job: MpiJob
    environment: Mapping[str, str]
    shm_prefix: str
    server: int
    log: Callable[[str], None]


class EngineSession:
    """A loaded model on the rank that serves it, or a rank's attachment to it."""

    def __init__(self, parameters: EngineParameters, around: Surroundings) -> None:
        """Load what this rank has to load.

        Raises:
            SimulatorError: the original would refuse to load; the message says what.
        """
        self._around = around
        self._hub: RankHub | None = None
        self._executor: EngineExecutor | None = None
        self.parameters = parameters
        self.engine = describe_engine(parameters.engine_directory)
        _check_batch(parameters, self.engine)
        self.assignment = assign(
            around.job,
            participant_ids=parameters.participant_ids,
            engine_ranks=self.engine.parallelism.ranks,
            fast_logits=parameters.fast_logits,
        )
        self._report()
        self._load()

    def _report(self) -> None:
        name, job, part = self.parameters.model_name, self._around.job, self.assignment
        warnings = (
            *self.parameters.warnings,
            *part.warnings,
            *decoding_warnings(self.engine, self.parameters.decoding),
        )
        for warning in warnings:
            self._around.log(f"WARNING {name}: {warning}")
        self._around.log(
            f"{name}: rank={job.rank} world_size={job.size} role={part.role.value} "
            f"participants={','.join(str(rank) for rank in part.participants)} "
            f"fast_logits={'on' if part.fast_logits else 'off'}"
        )

    def _load(self) -> None:
        role = self.assignment.role
        if role in (Role.ALONE, Role.LEADER):
            self._executor = self._load_executor(self._gpus())
        if role in (Role.LEADER, Role.ORCHESTRATOR):
            job = self._around.job
            self._hub = RankHub(job.identity, self.parameters.model_name, self._hello())
            self._hub.wait_for(self._others(), self._around.log)

    def _load_executor(self, gpus: tuple[SimulatedGPU, ...]) -> EngineExecutor:
        limits = self.engine.limits
        loaded = load_with_drafter(self.engine, self.parameters.decoding, gpu=gpus[0].product)
        self._around.log(
            f"{self.parameters.model_name}: loaded gpus={','.join(str(gpu.index) for gpu in gpus)} "
            f"mode={limits.speculative_decoding_mode} max_draft_len={limits.max_draft_len}"
        )
        return EngineExecutor(loaded, limits)

    def _others(self) -> frozenset[int]:
        job = self._around.job
        return frozenset((*range(job.size), *self.assignment.participants)) - {job.rank}

    def _hello(self) -> Hello:
        return Hello(self._around.job.rank, self.assignment.role.value, self._around.shm_prefix, self._around.server)

    def _gpus(self) -> tuple[SimulatedGPU, ...]:
        visible = require_gpus(self._around.environment, program=self.parameters.model_name)
        ranks = self.engine.parallelism.ranks
        devices = check_devices(self.parameters.device_ids, engine_ranks=ranks, visible=len(visible))
        return tuple(visible[device] for device in devices)

    def attach(self) -> bool:
        """Attach to the serving rank where this rank's part says so.

        A participant works here until the serving rank shuts down. Returns whether this rank should leave the job
        now, which is so after a participant's work.
        """
        part, job = self.assignment, self._around.job
        if part.role not in (Role.PARTICIPANT, Role.OUTSIDER):
            return False
        if part.role is Role.OUTSIDER or part.engine_rank is None:
            RankLink.attach(job.identity, self.parameters.model_name, self._hello())
            return False
        answer = self._participant(part, part.engine_rank)
        RankLink.attach(job.identity, self.parameters.model_name, self._hello()).work(answer)
        self._around.log(f"{self.parameters.model_name}: rank {job.rank}: the serving rank has shut down, leaving")
        return True

    def _participant(self, part: Assignment, engine_rank: int) -> Callable[[EngineRequest], EngineResult]:
        gpus = self._gpus()
        check_rank(self.engine, engine_rank, gpu=gpus[engine_rank].product)
        if engine_rank > 0:
            return _refuse
        job = self._around.job
        executor = self._load_executor(gpus)
        if not part.fast_logits:
            return executor.run
        shelf = LogitsShelf(job.identity, job.rank)
        return lambda request: shelf.keep(executor.run(take_logits(job.identity, request)))

    def run(self, request: EngineRequest) -> EngineResult:
        """Answer one request, here or on the participant that holds the engine.

        Raises:
            RequestError: the request is refused, or this rank serves nothing.
        """
        if self._executor is not None:
            return self._executor.run(request)
        if self._hub is None:
            raise RequestError(f"rank {self._around.job.rank} is no participant of {self.parameters.model_name}")
        return self._hub.run(self.assignment.participants[0], request)

    def close(self) -> None:
        """Unload; attached ranks go home."""
        if self._hub is not None:
            self._hub.close()


def _refuse(request: EngineRequest) -> EngineResult:
    raise RequestError(f"only the first rank of a model computes; {len(request.tokens)} tokens came to another")


def _check_batch(parameters: EngineParameters, engine: EngineDescription) -> None:
    limit = engine.limits.max_batch_size
    if parameters.max_batch_size > limit:
        raise ParameterError(
            f"max_batch_size ({parameters.max_batch_size}) of {parameters.model_name} is larger than the "
            f"engine's ({limit})"
        )

import pytest

from testbed.runtime.simulator.errors import RankError
from testbed.runtime.simulator.roles import Assignment, MpiJob, Role, assign, check_devices


def job(rank: int = 0, size: int = 1, *, orchestrator: bool = False, spawns: bool = True) -> MpiJob:
    return MpiJob("job", rank, size, orchestrator, spawns)


def without_spawning(
    rank: int, *, participants: tuple[int, ...] | None = (2, 3), engine_ranks: int = 2, fast_logits: bool = True
) -> Assignment:
    around = job(rank, 4, orchestrator=True, spawns=False)
    return assign(around, participant_ids=participants, engine_ranks=engine_ranks, fast_logits=fast_logits)


def test_rank_0_without_spawning_is_the_orchestrator() -> None:
    assert without_spawning(0).role is Role.ORCHESTRATOR


def test_a_listed_rank_takes_part_with_the_engine_file_of_its_place_in_the_list() -> None:
    part = without_spawning(3)
    assert (part.role, part.engine_rank) == (Role.PARTICIPANT, 1)


def test_an_unlisted_rank_is_an_outsider_and_warned_of() -> None:
    part = without_spawning(1)
    assert (part.role, len(part.warnings)) == (Role.OUTSIDER, 1)


def test_missing_participant_ids_without_spawning_are_refused() -> None:
    with pytest.raises(RankError, match="participant IDs is missing"):
        without_spawning(0, participants=None)


def test_as_many_participants_as_engine_ranks_are_demanded() -> None:
    with pytest.raises(RankError, match="not equal to TP\\*PP"):
        without_spawning(2, participants=(2,))


def test_the_orchestrator_cannot_take_part_itself() -> None:
    with pytest.raises(RankError, match="rank 0 is the orchestrator"):
        without_spawning(0, participants=(0, 1))


def test_fast_logits_are_on_without_spawning() -> None:
    assert without_spawning(0).fast_logits


@pytest.mark.parametrize("around", [job(), job(orchestrator=True)])
def test_fast_logits_elsewhere_are_off_with_no_more_than_a_warning(around: MpiJob) -> None:
    part = assign(around, participant_ids=None, engine_ranks=1, fast_logits=True)
    assert (part.fast_logits, len(part.warnings)) == (False, 1)


def test_a_spawning_orchestrator_refuses_more_than_one_rank() -> None:
    with pytest.raises(RankError, match="start it with one rank"):
        assign(job(0, 2, orchestrator=True), participant_ids=None, engine_ranks=1, fast_logits=False)


def test_leader_mode_puts_all_ranks_of_the_job_to_work() -> None:
    roles = [assign(job(rank, 2), participant_ids=None, engine_ranks=2, fast_logits=False).role for rank in range(2)]
    assert roles == [Role.LEADER, Role.PARTICIPANT]


def test_leader_mode_refuses_a_job_of_another_size() -> None:
    with pytest.raises(RankError, match="not equal"):
        assign(job(0, 3), participant_ids=None, engine_ranks=2, fast_logits=False)


def test_the_job_is_read_from_the_variables_of_mpirun_and_of_the_launch_script() -> None:
    environment = {
        "PMIX_NAMESPACE": "123",
        "OMPI_COMM_WORLD_RANK": "2",
        "OMPI_COMM_WORLD_SIZE": "3",
        "TRTLLM_ORCHESTRATOR": "1",
        "TRTLLM_ORCHESTRATOR_SPAWN_PROCESSES": "0",
    }
    read = MpiJob.from_environment(environment, process=9, namespace=7)
    assert read == MpiJob("123@7", 2, 3, orchestrator=True, spawns=False)


def test_each_engine_rank_needs_a_gpu() -> None:
    with pytest.raises(RankError, match="1 entries, but the engine has 2 ranks"):
        check_devices((0,), engine_ranks=2, visible=4)


def test_a_gpu_that_is_not_visible_is_refused() -> None:
    with pytest.raises(RankError, match="invalid device ordinal 4"):
        check_devices((3, 4), engine_ranks=2, visible=4)


def test_leader_mode_of_an_engine_split_both_ways_wants_all_its_ranks() -> None:
    roles = [assign(job(rank, 4), participant_ids=None, engine_ranks=4, fast_logits=False).role for rank in range(4)]
    assert roles == [Role.LEADER, *[Role.PARTICIPANT] * 3]


def test_a_spawning_orchestrator_serves_an_engine_of_several_ranks_alone() -> None:
    part = assign(job(orchestrator=True), participant_ids=None, engine_ranks=4, fast_logits=False)
    assert (part.role, part.engine_rank) == (Role.ALONE, 0)


def test_two_models_may_share_a_gpu() -> None:
    assert check_devices((0,), engine_ranks=1, visible=1) == (0,)

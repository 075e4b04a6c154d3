"""Starting the server in the place of the launcher."""

from __future__ import annotations

import resource
from typing import TYPE_CHECKING

from specdec_operator.pod.inputs import LaunchInput
from specdec_operator.pod.termination import Failed
from tests.unit.pod.models import write_model
from tests.unit.pod.shipped import ShippedProgram

if TYPE_CHECKING:
    from pathlib import Path


def test_the_launcher_becomes_the_server(tmp_path: Path) -> None:
    program = ShippedProgram.lay_out("launch", tmp_path)
    with program.start(LaunchInput(argv=("sh", "-c", "echo $$"))) as process:
        output, _ = process.communicate(timeout=30)

    assert output.strip() == str(process.pid)


def test_the_servers_exit_code_is_the_containers(tmp_path: Path) -> None:
    code, _ = ShippedProgram.lay_out("launch", tmp_path).run(LaunchInput(argv=("sh", "-c", "exit 7")))

    assert code == 7


def test_the_given_environment_is_laid_over_the_containers(tmp_path: Path) -> None:
    given = LaunchInput(argv=("sh", "-c", "echo $A-$B"), environment={"B": "new"})
    _, output = ShippedProgram.lay_out("launch", tmp_path).run(given, {"A": "old", "B": "old"})

    assert output.strip() == "old-new"


def test_scratch_directories_are_made(tmp_path: Path) -> None:
    given = LaunchInput(argv=("true",), environment={"HF_HOME": str(tmp_path / "scratch/huggingface")})
    ShippedProgram.lay_out("launch", tmp_path).run(given)

    assert (tmp_path / "scratch/huggingface").is_dir()


def test_the_memory_lock_limit_is_raised_to_the_hard_limit(tmp_path: Path) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    given = LaunchInput(argv=("sh", "-c", "grep 'locked memory' /proc/self/limits"))
    _, output = ShippedProgram.lay_out("launch", tmp_path).run(given)

    soft = output.split()[3]
    assert soft == ("unlimited" if hard == resource.RLIM_INFINITY else str(hard))


def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    program = ShippedProgram.lay_out("launch", tmp_path)
    code, _ = program.run(LaunchInput(argv=("tritonserver-of-nowhere",)))

    outcome = program.outcome()
    assert isinstance(outcome, Failed)
    assert (code, outcome.reason) == (3, "ProgramNotFound")


def test_a_server_whose_model_was_cut_since_the_check_is_not_started(tmp_path: Path) -> None:
    model = write_model(tmp_path / "model")
    weights = model / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    program = ShippedProgram.lay_out("launch", tmp_path)
    _, output = program.run(LaunchInput(argv=("sh", "-c", "echo serving"), model_directories=(str(model),)))

    outcome = program.outcome()
    assert isinstance(outcome, Failed)
    assert (outcome.reason, "serving" in output) == ("UnreadableModel", False)

"""The frame of every program."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING, Any

import pytest

from specdec_operator.pod.errors import ProgramFailure
from specdec_operator.pod.inputs import BuildInput, BuildStep, InspectInput
from specdec_operator.pod.program import run
from specdec_operator.pod.termination import Failed, Succeeded, decode
from tests.unit.pod.models import write_model
from tests.unit.pod.shipped import ShippedProgram

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    path = tmp_path / "termination-log"
    monkeypatch.setenv("SPECDEC_TERMINATION_LOG", str(path))
    before = signal.getsignal(signal.SIGTERM)
    yield path
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def input_file(tmp_path: Path) -> str:
    path = tmp_path / "input.json"
    path.write_text(InspectInput(directory="/model").to_json())
    return str(path)


def test_a_result_reaches_the_termination_log(log: Path, input_file: str) -> None:
    code = run(InspectInput, lambda given: {"read": given.directory}, arguments=[input_file])

    assert (code, decode(log.read_text())) == (0, Succeeded({"read": "/model"}))


def test_a_failure_keeps_its_reason_and_class(log: Path, input_file: str) -> None:
    def work(_given: InspectInput) -> dict[str, Any]:
        raise ProgramFailure("StoreFull", "needs 5 GiB", terminal=True)

    code = run(InspectInput, work, arguments=[input_file])

    assert (code, decode(log.read_text())) == (3, Failed("StoreFull", "needs 5 GiB", terminal=True))


def test_an_unforeseen_error_may_be_retried(log: Path, input_file: str) -> None:
    def work(_given: InspectInput) -> dict[str, Any]:
        raise ZeroDivisionError("division by zero")

    code = run(InspectInput, work, arguments=[input_file])

    expected = Failed("ProgramError", "ZeroDivisionError: division by zero", terminal=False)
    assert (code, decode(log.read_text())) == (1, expected)


def test_a_missing_input_file_is_terminal(log: Path) -> None:
    code = run(InspectInput, lambda _: {}, arguments=["/nowhere/input.json"])

    outcome = decode(log.read_text())
    assert isinstance(outcome, Failed)
    assert (code, outcome.reason) == (3, "InvalidInput")


def test_a_termination_log_that_cannot_be_written_does_not_change_the_exit_code(
    log: Path, input_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPECDEC_TERMINATION_LOG", str(log / "no" / "such" / "place"))

    assert run(InspectInput, lambda _: {}, arguments=[input_file]) == 0


def test_a_shipped_program_runs_without_the_package_around_it(tmp_path: Path) -> None:
    program = ShippedProgram.lay_out("inspect_model", tmp_path)
    code, output = program.run(InspectInput(directory=str(write_model(tmp_path / "model"))))

    assert code == 0, output
    assert isinstance(program.outcome(), Succeeded)


def test_a_stopped_program_says_so_and_may_be_retried(tmp_path: Path) -> None:
    program = ShippedProgram.lay_out("build", tmp_path)
    started = tmp_path / "started"
    tools = write_tools(tmp_path / "bin", f"#!/bin/sh\ntouch {started}\nsleep 60\n")
    given = BuildInput(
        model=str(write_model(tmp_path / "model")),
        store=str(tmp_path),
        directory="engines/x",
        steps=(BuildStep(name="build", argv=("trtllm-build",)),),
        ranks=1,
    )
    with program.start(given, {"PATH": f"{tools}:{os.environ['PATH']}", "POD_UID": "u"}) as process:
        wait_for(started)
        process.terminate()
        process.communicate(timeout=30)

    outcome = program.outcome()
    assert isinstance(outcome, Failed)
    assert (process.returncode, outcome.reason, outcome.terminal) == (1, "Interrupted", False)


def write_tools(directory: Path, build: str) -> Path:
    directory.mkdir()
    smi = '#!/bin/sh\ncase "$1" in -L) echo "GPU 0: X (UUID: GPU-1)";; *) echo "X, 590.44.01";; esac\n'
    for name, text in {"nvidia-smi": smi, "trtllm-build": build}.items():
        (directory / name).write_text(text)
        (directory / name).chmod(0o755)
    return directory


def wait_for(path: Path) -> None:
    for _ in range(300):
        if path.exists():
            return
        time.sleep(0.05)
    pytest.fail(f"{path} never appeared")

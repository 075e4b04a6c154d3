"""Every method on engines: the command, the environment and the repository, key by key as documented for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from specdec_operator.pod.assemble import assemble
from specdec_operator.pod.inputs import AssembleInput
from specdec_operator.pod.model_config import parameters
from specdec_operator.pod.textproto import parse
from specdec_operator.runtimes.environment import mpi_environment
from testbed.runtime.simulator.launch_triton_server import launch_command, launch_environment
from tests.vectors.engine_rows import EngineRow, rows

IMAGE = Path(__file__).parents[3] / "testbed" / "runtime" / "image" / "root"
each_row = pytest.mark.parametrize("row", rows(), ids=lambda row: row.name)


@each_row
def test_the_command_is_the_launch_script_s(row: EngineRow) -> None:
    gpus = ",".join(str(device) for device in range(row.document.get("gpus", 0)))
    theirs = launch_command(row.script, {"NVIDIA_VISIBLE_DEVICES": gpus})

    assert list(row.files.argv) == theirs[: -1 if theirs[-1] == ":" else None]


@each_row
def test_the_environment_is_the_launch_script_s_and_mpi_s(row: EngineRow) -> None:
    expected = launch_environment(row.script)
    if row.files.argv[0] == "mpirun":
        expected |= mpi_environment(exit_timeout_seconds=30)

    assert row.files.environment == expected


@each_row
def test_every_variable_is_what_is_documented_or_beyond_it_with_a_reason(row: EngineRow) -> None:
    found = {t.name: {**t.values, **t.optional_values} for t in row.files.templates}

    assert found == row.variables


@each_row
def test_clients_are_told_what_they_must_send(row: EngineRow) -> None:
    assert row.files.request_parameters == row.document.get("clients", {})


@each_row
def test_the_proof_sends_what_clients_are_told_to(row: EngineRow) -> None:
    assert set(row.files.request_parameters) <= set(row.files.generate_request)


@each_row
def test_the_image_s_templates_take_the_values_and_nothing_more(row: EngineRow, tmp_path: Path) -> None:
    here = tuple(replace(t, candidates=tuple(f"{IMAGE}{c}" for c in t.candidates)) for t in row.files.templates)
    assemble(AssembleInput(output=str(tmp_path), models=here, revision_model=row.files.endpoint_model))
    config = parse((tmp_path / "tensorrt_llm" / "config.pbtxt").read_text())

    devices = row.variables["tensorrt_llm"]["gpu_device_ids"]
    assert (parameters(config)["gpu_device_ids"], parameters(config)["gpt_model_path"]) == (devices, "/engines/target")

import pytest

from testbed.cluster.kwok import KwokNodes
from testbed.cluster.node import RealNode
from testbed.runtime.simulator.errors import NoGPUError
from testbed.runtime.simulator.gpus import driver_version, visible_gpus
from testbed.runtime.simulator.nvidia_smi import nvidia_smi


def test_a_query_prints_one_line_per_gpu(gpus: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--query-gpu=name,memory.total,driver_version,compute_cap", "--format=csv,noheader"]
    assert nvidia_smi(arguments, gpus) == 0
    assert capsys.readouterr().out.splitlines() == ["NVIDIA H100 80GB HBM3, 81559 MiB, 580.105.08, 9.0"] * 4


def test_a_query_tells_the_driver_that_the_host_is_said_to_have(
    gpus: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    nvidia_smi(["--query-gpu=driver_version", "--format=csv,noheader"], gpus | {"SIMULATOR_DRIVER": "535.183.06"})
    assert set(capsys.readouterr().out.splitlines()) == {"535.183.06"}


def test_the_testbed_s_nodes_tell_the_driver_that_their_containers_find() -> None:
    assert KwokNodes().driver == RealNode().driver == driver_version({})


def test_the_list_names_each_gpu(gpus: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    nvidia_smi(["-L"], gpus)
    assert capsys.readouterr().out.splitlines()[3].startswith("GPU 3: NVIDIA H100 80GB HBM3 (UUID: GPU-")


def test_an_unknown_field_is_refused(gpus: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert nvidia_smi(["--query-gpu=colour", "--format=csv"], gpus) == 2
    assert "colour" in capsys.readouterr().out


@pytest.mark.parametrize("shown", ["void", "", "none"])
def test_without_a_gpu_it_fails(shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert nvidia_smi([], {"NVIDIA_VISIBLE_DEVICES": shown, "SIMULATOR_GPUS": "4"}) != 0
    assert capsys.readouterr().out == "No devices were found\n"


def test_an_unset_variable_shows_no_gpu() -> None:
    assert visible_gpus({"SIMULATOR_GPUS": "4"}) == ()


def test_devices_can_be_shown_by_number(gpus: dict[str, str]) -> None:
    assert [gpu.index for gpu in visible_gpus(gpus | {"NVIDIA_VISIBLE_DEVICES": "0,2"})] == [0, 2]


def test_a_device_that_the_host_lacks_is_refused(gpus: dict[str, str]) -> None:
    with pytest.raises(NoGPUError, match="unknown device 7"):
        visible_gpus(gpus | {"NVIDIA_VISIBLE_DEVICES": "7"})

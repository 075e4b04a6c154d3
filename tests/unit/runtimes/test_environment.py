from __future__ import annotations

import pytest

from specdec_operator.runtimes.environment import (
    is_owned,
    orchestrator_environment,
    scratch_environment,
    server_environment,
    without_gpu,
)


def test_everything_that_programs_cache_is_in_the_scratch_directory() -> None:
    places = {name: place for name, place in scratch_environment().items() if name != "USER"}

    assert all(place.startswith("/scratch/") for place in places.values())
    assert len(set(places.values())) == len(places)


def test_the_server_asks_no_hub() -> None:
    assert server_environment()["HF_HUB_OFFLINE"] == "1"


def test_a_container_without_gpus_sees_none() -> None:
    assert without_gpu() == {"NVIDIA_VISIBLE_DEVICES": "void"}


@pytest.mark.parametrize("name", [*server_environment(), *without_gpu(), "LLM_CONFIG_PATH", "TRTLLM_ORCHESTRATOR_X"])
def test_what_the_operator_sets_is_its_own(name: str) -> None:
    assert is_owned(name)


@pytest.mark.parametrize("name", ["MY_HOME", "TRTLLM_LOG_LEVEL", "hf_home", "HTTP_PROXY"])
def test_the_rest_is_free(name: str) -> None:
    assert not is_owned(name)


def test_a_server_that_starts_its_ranks_is_told_so() -> None:
    assert orchestrator_environment(spawns=True) == {
        "TRTLLM_ORCHESTRATOR": "1",
        "TRTLLM_ORCHESTRATOR_SPAWN_PROCESSES": "1",
    }


def test_a_server_whose_ranks_start_with_it_is_told_so() -> None:
    assert orchestrator_environment(spawns=False)["TRTLLM_ORCHESTRATOR_SPAWN_PROCESSES"] == "0"

import pytest

from testbed.runtime.simulator.errors import ParameterError
from testbed.runtime.simulator.launch_triton_server import launch_command, launch_environment

FAST_LOGITS = [
    "--world_size=3",
    "--model_repo=/repository",
    "--multi-model",
    "--disable-spawn-processes",
    "--tensorrt_llm_model_name=tensorrt_llm,tensorrt_llm_draft",
]


def test_ranks_above_0_load_the_engine_models_only() -> None:
    ranks = " ".join(launch_command(FAST_LOGITS, {})).split(" : ")
    assert ["--load-model=tensorrt_llm --load-model=tensorrt_llm_draft" in rank for rank in ranks[:3]] == [
        False,
        True,
        True,
    ]


def test_each_rank_has_its_own_shared_memory_prefix() -> None:
    command = launch_command(FAST_LOGITS, {})
    prefixes = [word for word in command if word.startswith("--backend-config=python,shm-region-prefix-name=")]
    assert [prefix.rpartition("=")[2] for prefix in prefixes] == ["prefix0_", "prefix1_", "prefix2_"]


def test_memory_pools_are_turned_off_with_spawning_only(gpus: dict[str, str]) -> None:
    spawning = launch_command(["--multi-model"], gpus)
    assert "--cuda-memory-pool-byte-size=3:0" in spawning
    assert "--enable-peer-access=false" not in launch_command(FAST_LOGITS, gpus)


def test_several_models_set_the_orchestrators_variables() -> None:
    assert launch_environment(FAST_LOGITS) == {
        "TRTLLM_ORCHESTRATOR": "1",
        "TRTLLM_ORCHESTRATOR_SPAWN_PROCESSES": "0",
    }


def test_several_ranks_with_spawning_are_refused() -> None:
    with pytest.raises(ParameterError, match="World size must be 1"):
        launch_command(["--multi-model", "--world_size=2"], {})

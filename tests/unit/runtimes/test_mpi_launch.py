from __future__ import annotations

import pytest

from specdec_operator.runtimes.mpi_launch import Launch, launch
from testbed.runtime.simulator.launch_triton_server import launch_command

NAMES = ("tensorrt_llm", "tensorrt_llm_draft")


def theirs(*arguments: str, gpus: str = "") -> list[str]:
    given = ["--model_repo=/repository", "--exit_timeout=30", *arguments]
    return launch_command(given, {"NVIDIA_VISIBLE_DEVICES": gpus})[:-1]


def test_one_process_needs_no_mpi() -> None:
    assert launch(Launch(engines=NAMES[:1]))[0] == "/opt/tritonserver/bin/tritonserver"


def test_a_server_that_starts_its_ranks_is_started_by_mpi_and_leaves_the_memory_to_them() -> None:
    assert list(launch(Launch(engines=NAMES, spawning_gpus=3))) == theirs("--multi-model", gpus="0,1,2")


def test_ranks_that_start_with_the_pod_are_as_the_launch_script_s() -> None:
    expected = theirs(
        "--multi-model",
        "--disable-spawn-processes",
        "--world_size=4",
        "--tensorrt_llm_model_name=tensorrt_llm,tensorrt_llm_draft",
    )

    assert list(launch(Launch(engines=NAMES, world_size=4))) == expected


def test_ranks_are_not_started_with_the_pod_and_by_the_server() -> None:
    with pytest.raises(ValueError, match="alone, not one of 3"):
        launch(Launch(engines=NAMES, world_size=3, spawning_gpus=2))


def test_the_rank_that_answers_alone_is_talkative() -> None:
    argv = launch(Launch(engines=NAMES, world_size=3, log_verbosity=3))

    assert [index for index, word in enumerate(argv) if word == "--log-verbose=3"] == [argv.index("-n") + 8]


def test_a_quiet_server_is_asked_for_nothing() -> None:
    assert not [word for word in launch(Launch(engines=NAMES, world_size=3)) if "log" in word]


def test_each_rank_has_shared_memory_of_its_own() -> None:
    argv = launch(Launch(engines=NAMES, world_size=3))
    prefixes = [word for word in argv if "shm-region-prefix-name" in word]

    assert len(set(prefixes)) == len(prefixes) == 3


def test_every_rank_but_the_first_loads_the_engines_and_nothing_else() -> None:
    argv = launch(Launch(engines=NAMES, world_size=3))
    segments = " ".join(argv).split(" : ")

    assert [segment.count("--load-model=") for segment in segments] == [0, 2, 2]
    assert ["explicit" in segment for segment in segments] == [False, True, True]

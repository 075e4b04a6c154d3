"""What is publicly known of heads and their targets."""

from __future__ import annotations

import pytest

from specdec_operator.planning.known_pairs import known_pairs


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Meta-Llama-3.1-8B-Instruct", True),
        ("meta-llama/Llama-3.1-8B-Instruct", "someone/llama-3.1-8b-instruct-awq-int4", True),
        ("meta-llama/Llama-2-7b-chat-hf", "someone/Llama-2-7b-chat-GPTQ", True),
        ("lmsys/vicuna-7b-v1.3", "/data/models/vicuna-7b-v1.3/", True),
        ("meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-8B", False),
        ("meta-llama/Meta-Llama-3-8B-Instruct", "meta-llama/Llama-3.1-8B-Instruct", False),
        ("lmsys/vicuna-7b-v1.3", "lmsys/vicuna-7b-v1.5", False),
    ],
)
def test_one_model_is_known_under_each_of_its_names(one: str, other: str, *, same: bool) -> None:
    assert known_pairs().is_same(one, other) is same


@pytest.mark.parametrize(
    ("declared", "target", "other"),
    [
        ("lmsys/vicuna-7b-v1.3", "lmsys/vicuna-7b-v1.5", True),
        ("lmsys/vicuna-7b-v1.3", "meta-llama/Llama-2-7b-chat-hf", True),
        ("someone/model", "Someone/model-2", True),
        ("lmsys/vicuna-7b-v1.3", "someone/vicuna-tuned", False),
        ("lmsys/vicuna-7b-v1.3", "lmsys/vicuna-7b-v1.3", False),
        ("/data/vicuna", "lmsys/vicuna-7b-v1.5", False),
        ("", "lmsys/vicuna-7b-v1.5", False),
    ],
)
def test_another_model_is_certain_only_where_names_are_the_publishers(
    declared: str, target: str, *, other: bool
) -> None:
    assert known_pairs().is_other(declared, target) is other


def test_every_known_target_is_a_repository_of_a_known_publisher() -> None:
    owners = {target.split("/")[0] for targets in known_pairs().heads.values() for target in targets}

    assert owners <= set(known_pairs().publishers)

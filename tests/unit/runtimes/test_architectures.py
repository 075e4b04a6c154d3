"""Which architectures a version knows for a method."""

from __future__ import annotations

import pytest

from specdec_operator.runtimes.architectures import known_architectures

LLAMA = ("LlamaForCausalLM", "llama")
QWEN3 = ("Qwen3ForCausalLM", "qwen3")


def knows(method: str, role: str, version: str, architecture: str, model_type: str = "") -> bool:
    lists = [known for known in known_architectures("VLLM", method) if known.role == role]  # type: ignore[arg-type]
    return all(known.knows(architecture, model_type, version=version) for known in lists)


@pytest.mark.parametrize(
    ("architecture", "model_type", "first", "before"),
    [
        (*LLAMA, "0.9.0", "0.8.4"),
        (*QWEN3, "0.10.1.1", "0.9.2"),
        ("Qwen2ForCausalLM", "qwen2", "0.10.2", "0.10.1.1"),
        ("Qwen3MoeForCausalLM", "qwen3_moe", "0.11.1", "0.11.0"),
        ("MiniCPMForCausalLM", "minicpm", "0.11.0", "0.10.2"),
        ("GptOssForCausalLM", "gpt_oss", "0.11.0", "0.10.2"),
        ("MistralForCausalLM", "mistral", "0.22.1", "0.19.0"),
        ("NemotronHForCausalLM", "nemotron_h", "0.22.1", "0.19.0"),
    ],
)
def test_a_target_of_eagle3_is_known_from_a_version_on(
    architecture: str, model_type: str, first: str, before: str
) -> None:
    assert knows("Eagle3", "target", first, architecture, model_type)
    assert before < "0.9" or not knows("Eagle3", "target", before, architecture, model_type)


def test_a_class_that_could_is_not_enough_while_its_family_is_not_listed() -> None:
    assert not knows("Eagle3", "target", "0.10.2", "MistralForCausalLM", "mistral")


@pytest.mark.parametrize(
    ("method", "version", "architecture", "known"),
    [
        ("Eagle3", "0.9.2", "LlamaForCausalLM", True),
        ("Eagle3", "0.10.1.1", "LlamaForCausalLMEagle3", False),
        ("Eagle3", "0.10.2", "LlamaForCausalLMEagle3", True),
        ("Eagle3", "0.22.1", "Qwen3ForCausalLM", False),
        ("Eagle3", "0.24.0", "Qwen3ForCausalLM", True),
        ("Eagle3", "0.10.1.1", "Eagle3Speculator", True),
        ("Eagle", "0.9.2", "Qwen2ForCausalLM", True),
        ("Eagle", "0.10.2", "Qwen2ForCausalLM", False),
        ("Eagle", "0.10.2", "EagleLlamaForCausalLM", True),
    ],
)
def test_a_head_goes_by_the_name_of_its_own_class(method: str, version: str, architecture: str, *, known: bool) -> None:
    assert knows(method, "draft", version, architecture) is known


@pytest.mark.parametrize(
    ("architecture", "first"),
    [
        ("DeepseekV3ForCausalLM", "0.7.3"),
        ("MiMoForCausalLM", "0.9"),
        ("Glm4MoeForCausalLM", "0.10.1.1"),
        ("Ernie4_5_MoeForCausalLM", "0.10.2"),
        ("Qwen3NextForCausalLM", "0.10.2"),
        ("DeepseekV32ForCausalLM", "0.11.0"),
        ("NovelForCausalLM", ""),
    ],
)
def test_the_first_version_that_drafts_with_a_target_s_own_layers_is_told(architecture: str, first: str) -> None:
    (known,) = known_architectures("VLLM", "MTP")

    assert known.first(architecture, "") == first


def test_a_version_newer_than_those_that_were_read_judges_by_itself() -> None:
    assert not knows("MTP", "target", "0.27.1", "NovelForCausalLM")
    assert knows("MTP", "target", "0.28.0", "NovelForCausalLM")


def test_a_method_that_no_list_speaks_of_takes_every_architecture() -> None:
    assert known_architectures("VLLM", "NGram") == []

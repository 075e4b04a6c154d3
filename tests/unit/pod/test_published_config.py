"""config.json, whatever its family calls things."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from specdec_operator.pod.errors import ProgramFailure
from specdec_operator.pod.model_facts import read_facts
from tests.unit.pod.models import CONFIG, write_model

if TYPE_CHECKING:
    from pathlib import Path

Json = dict[str, Any]
GPT2: Json = {
    "architectures": ["GPT2LMHeadModel"],
    "model_type": "gpt2",
    "n_embd": 768,
    "n_head": 12,
    "n_layer": 12,
    "n_positions": 1024,
    "n_inner": None,
    "vocab_size": 50257,
}
OPT: Json = {
    "architectures": ["OPTForCausalLM"],
    "model_type": "opt",
    "hidden_size": 768,
    "ffn_dim": 3072,
    "num_attention_heads": 12,
    "num_hidden_layers": 12,
    "max_position_embeddings": 2048,
    "torch_dtype": "float16",
    "vocab_size": 50272,
}
FALCON: Json = {
    "architectures": ["FalconForCausalLM"],
    "model_type": "falcon",
    "hidden_size": 4544,
    "multi_query": True,
    "num_attention_heads": 71,
    "num_hidden_layers": 32,
    "max_position_embeddings": 2048,
    "vocab_size": 65024,
}
GEMMA3: Json = {
    "architectures": ["Gemma3ForConditionalGeneration"],
    "model_type": "gemma3",
    "text_config": {
        "model_type": "gemma3_text",
        "hidden_size": 2560,
        "intermediate_size": 10240,
        "num_hidden_layers": 34,
    },
    "vision_config": {"hidden_size": 1152, "num_hidden_layers": 27},
}
DEEPSEEK: Json = {
    "architectures": ["DeepseekV3ForCausalLM"],
    "model_type": "deepseek_v3",
    "hidden_size": 7168,
    "kv_lora_rank": 512,
    "qk_rope_head_dim": 64,
    "num_attention_heads": 128,
    "num_key_value_heads": 128,
    "num_hidden_layers": 61,
    "num_nextn_predict_layers": 1,
    "max_position_embeddings": 163840,
    "vocab_size": 129280,
    "quantization_config": {"quant_method": "fp8"},
}


@pytest.mark.parametrize(
    ("config", "wanted"),
    [
        (GPT2, (768, 12, 12, 12, 64, 1024, None)),
        (OPT, (768, 12, 12, 12, 64, 2048, 3072)),
        (FALCON, (4544, 32, 71, 1, 64, 2048, None)),
        (GEMMA3, (2560, 34, 8, 4, 256, 131072, 10240)),
        (DEEPSEEK, (7168, 61, 128, 128, 56, 163840, None)),
    ],
    ids=["gpt2", "opt", "falcon", "gemma3", "deepseek"],
)
def test_each_family_s_words_are_understood(tmp_path: Path, config: Json, wanted: tuple[int | None, ...]) -> None:
    facts = read_facts(write_model(tmp_path, config={**dict.fromkeys(CONFIG), **config}))

    shape = (facts.hidden_size, facts.layers, facts.attention_heads, facts.key_value_heads, facts.head_size)
    assert (*shape, facts.context_length, facts.intermediate_size) == wanted


def test_the_language_model_s_family_is_told_not_the_wrapper_s(tmp_path: Path) -> None:
    facts = read_facts(write_model(tmp_path, config={**dict.fromkeys(CONFIG), **GEMMA3}))

    assert (facts.architecture, facts.model_type) == ("Gemma3ForConditionalGeneration", "gemma3_text")


def test_a_compressed_cache_is_told(tmp_path: Path) -> None:
    facts = read_facts(write_model(tmp_path, config={**dict.fromkeys(CONFIG), **DEEPSEEK}))

    assert (facts.latent_size, facts.next_token_layers) == (576, 1)


@pytest.mark.parametrize(
    ("declared", "file", "wanted"),
    [
        ({"quant_method": "fp8"}, None, "fp8"),
        ({"quant_method": "awq", "bits": 4}, None, "awq"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, None, "modelopt_nvfp4"),
        (None, {"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}}, "modelopt_fp8"),
        (None, {"quantization": {"quant_algo": None}}, ""),
        (None, None, ""),
    ],
)
def test_published_quantization_is_told(tmp_path: Path, declared: Json | None, file: Json | None, wanted: str) -> None:
    directory = write_model(tmp_path, config={"quantization_config": declared})
    if file:
        (directory / "hf_quant_config.json").write_text(json.dumps(file))

    assert read_facts(directory).quantization == wanted


@pytest.mark.parametrize("value", [0, -1, True, 2.5, "64", 2**31])
def test_a_number_that_is_none_is_refused_by_its_key(tmp_path: Path, value: object) -> None:
    with pytest.raises(ProgramFailure, match="hidden_size must be a positive integer"):
        read_facts(write_model(tmp_path, config={"hidden_size": value}))


@pytest.mark.parametrize("base", ["über/modell", "a" * 300, "line\nbreak", 7])
def test_a_declared_base_that_cannot_be_a_name_counts_as_none(tmp_path: Path, base: object) -> None:
    assert read_facts(write_model(tmp_path, config={"base_model_name_or_path": base})).declared_base == ""


@pytest.mark.parametrize(
    ("config", "full"),
    [
        ({"layer_types": ["full_attention", "sliding_attention", "sliding_attention", "full_attention"]}, 2),
        ({"layer_types": ["linear_attention"] * 4}, 1),
        ({"layer_types": ["full_attention"] * 4}, None),
        ({"sliding_window_pattern": 2}, 2),
        ({"full_attention_interval": 4}, 1),
        ({"sliding_window": 4096}, None),
    ],
)
def test_layers_that_look_at_the_whole_text_are_counted(tmp_path: Path, config: Json, full: int | None) -> None:
    assert read_facts(write_model(tmp_path, config=config)).full_attention_layers == full


@pytest.mark.parametrize(
    ("pattern", "full"),
    [
        ("LLLLLG", 2),
        ("LLLG", 3),
        ("llg", 4),
        ("6", 2),
        ("G", None),
        ("4", 3),
        (0, None),
        ("", None),
        ("odd", None),
        ([], None),
    ],
)
def test_a_pattern_of_layers_may_be_a_text(tmp_path: Path, pattern: object, full: int | None) -> None:
    config = {"num_hidden_layers": 12, "sliding_window_pattern": pattern}

    assert read_facts(write_model(tmp_path, config=config)).full_attention_layers == full


def test_a_falcon_that_names_no_positions_has_its_class_s(tmp_path: Path) -> None:
    config = {**dict.fromkeys(CONFIG), **FALCON, "max_position_embeddings": None, "num_kv_heads": 71}

    facts = read_facts(write_model(tmp_path, config=config))

    assert (facts.context_length, facts.key_value_heads) == (2048, 1)


def test_a_falcon_of_the_new_architecture_has_the_key_value_heads_that_it_names(tmp_path: Path) -> None:
    config = {**dict.fromkeys(CONFIG), **FALCON, "new_decoder_architecture": True, "num_kv_heads": 8}

    assert read_facts(write_model(tmp_path, config=config)).key_value_heads == 8


def test_tokens_that_config_does_not_name_are_those_of_generation(tmp_path: Path) -> None:
    model = write_model(tmp_path, config={"bos_token_id": None, "eos_token_id": None})
    (model / "generation_config.json").write_text(json.dumps({"bos_token_id": 7, "eos_token_id": [8, 9]}))

    facts = read_facts(model)

    assert (facts.bos_token_id, facts.eos_token_ids) == (7, (8, 9))


def test_tokens_that_config_names_are_not_those_of_generation(tmp_path: Path) -> None:
    model = write_model(tmp_path)
    (model / "generation_config.json").write_text(json.dumps({"bos_token_id": 7, "eos_token_id": [8, 9]}))

    assert read_facts(model).eos_token_ids == (2, 3)


@pytest.mark.parametrize(
    "config",
    [
        {"architectures": ["\ud800"]},
        {"architectures": [7]},
        {"architectures": {"a": 1}},
        {"eos_token_id": float("inf")},
        {"eos_token_id": 10**30},
        {"vocab_size": float("inf")},
        {"vocab_size": float("nan")},
        {"hidden_size": 10**30},
        {"torch_dtype": "\udcff"},
        {"is_encoder_decoder": True},
    ],
)
def test_a_value_that_no_model_has_is_refused_by_its_file(tmp_path: Path, config: Json) -> None:
    with pytest.raises(ProgramFailure, match=r"config\.json: ") as caught:
        read_facts(write_model(tmp_path, config=config))

    assert (caught.value.reason, caught.value.terminal) == ("UnsupportedConfig", True)
    assert caught.value.message.encode()


@pytest.mark.parametrize("family", ["\ud800", 7, ["llama"], {"a": {}}])
def test_a_family_that_cannot_be_a_name_counts_as_none(tmp_path: Path, family: object) -> None:
    assert read_facts(write_model(tmp_path, config={"model_type": family})).model_type == ""

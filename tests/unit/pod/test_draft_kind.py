"""What kind of model a directory holds, as published repositories are written."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from specdec_operator.api.v1alpha1.model_facts import ModelFacts
from specdec_operator.pod.errors import ProgramFailure
from specdec_operator.pod.model_facts import read_facts
from specdec_operator.pod.termination import Succeeded, encode
from tests.unit.pod.checkpoints import write_checkpoint, write_safetensors

if TYPE_CHECKING:
    from pathlib import Path

Json = dict[str, Any]
Shapes = dict[str, tuple[int, ...]]

LLAMA_LAYER: Json = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 1,
    "num_attention_heads": 32,
    "max_position_embeddings": 2048,
    "torch_dtype": "float16",
    "vocab_size": 32000,
}
EAGLE: Shapes = {
    "embed_tokens.weight": (32000, 4096),
    "fc.weight": (4096, 8192),
    "layers.0.self_attn.q_proj.weight": (4096, 4096),
}
EAGLE3: Shapes = {
    "d2t": (32000,),
    "t2d": (32000,),
    "fc.weight": (4096, 12288),
    "midlayer.self_attn.q_proj.weight": (4096, 8192),
    "lm_head.weight": (32000, 4096),
}
NORM: Shapes = {"norm.weight": (4096,)}
WHOLE: Shapes = {
    "model.embed_tokens.weight": (32000, 4096),
    "model.layers.0.mlp.up_proj.weight": (11008, 4096),
    "lm_head.weight": (32000, 4096),
}
MEDUSA: Shapes = {
    name: shape
    for head in range(4)
    for name, shape in {
        f"{head}.0.linear.weight": (4096, 4096),
        f"{head}.0.linear.bias": (4096,),
        f"{head}.1.weight": (32000, 4096),
    }.items()
}
CONVERTED_MEDUSA: Shapes = {
    name: shape
    for head in range(5)
    for name, shape in {
        f"blocks.{head}.layers.0.weight": (4096, 4096),
        f"lm_heads.{head}.weight": (32000, 4096),
    }.items()
}


def directory_of(path: Path, config: Json, shapes: Shapes, *, weights: str = "model.safetensors") -> Path:
    path.mkdir(exist_ok=True)
    (path / "config.json").write_text(json.dumps(config))
    (write_safetensors if weights.endswith(".safetensors") else write_checkpoint)(path / weights, shapes)
    return path


def facts_of(path: Path, config: Json, shapes: Shapes, *, weights: str = "model.safetensors") -> ModelFacts:
    wire = read_facts(directory_of(path, config, shapes, weights=weights)).to_wire()
    return ModelFacts.model_validate(wire)


@pytest.mark.parametrize(
    ("config", "shapes", "kind"),
    [
        ({}, EAGLE, "EagleHead"),
        ({}, EAGLE3, "Eagle3Head"),
        ({}, {"fc.weight": (4096, 12288)}, "Eagle3Head"),
        ({}, WHOLE, "Model"),
        ({"draft_vocab_size": 32000}, WHOLE, "Eagle3Head"),
        ({"architectures": ["LlamaForCausalLMEagle3"]}, NORM, "Eagle3Head"),
        ({"architectures": ["EagleLlamaForCausalLM"]}, NORM, "EagleHead"),
        ({"architectures": ["LlamaForCausalLMEagle3"]}, EAGLE3, "Eagle3Head"),
        ({"eagle_config": {"use_aux_hidden_state": True}}, NORM, "Eagle3Head"),
        ({"num_hidden_layers": 32}, EAGLE, "Model"),
    ],
)
@pytest.mark.parametrize("weights", ["model.safetensors", "pytorch_model.bin"])
def test_a_head_is_told_by_its_config_and_tensors(
    tmp_path: Path, config: Json, shapes: Shapes, kind: str, weights: str
) -> None:
    assert facts_of(tmp_path, {**LLAMA_LAYER, **config}, shapes, weights=weights).kind == kind


@pytest.mark.parametrize("content", [b"x" * 100, b"", b"\x02\0\0\0\0\0\0\0{}"])
def test_a_head_without_a_readable_tensor_is_refused(tmp_path: Path, content: bytes) -> None:
    directory = directory_of(tmp_path, {**LLAMA_LAYER, "draft_vocab_size": 32000}, NORM)
    (directory / "model.safetensors").write_bytes(content)

    with pytest.raises(ProgramFailure, match=r"model\.safetensors") as caught:
        read_facts(directory)

    assert (caught.value.reason, caught.value.terminal) == ("UnreadableModel", True)


@pytest.mark.parametrize(
    ("config", "tensors", "said"),
    [
        ({"draft_vocab_size": 16000}, {}, "d2t has 32000 rows, and config.json makes them 16000"),
        ({"vocab_size": 128256}, {}, "t2d has 32000 rows, and config.json makes them 128256"),
        ({"draft_vocab_size": 32000}, {"lm_head.weight": (16000, 4096)}, "lm_head.weight has 16000 rows"),
        ({"draft_vocab_size": 16000}, {"d2t": (), "lm_head.weight": (16000, 4096)}, "no tensor d2t says which"),
    ],
)
@pytest.mark.parametrize("prefix", ["", "model."])
def test_a_head_whose_tensors_contradict_its_config_is_refused(
    tmp_path: Path, config: Json, tensors: Shapes, said: str, prefix: str
) -> None:
    shapes = {f"{prefix}{name}": shape for name, shape in {**EAGLE3, **tensors}.items() if shape}
    directory = directory_of(tmp_path, {**LLAMA_LAYER, **config}, shapes)

    with pytest.raises(ProgramFailure, match=said) as caught:
        read_facts(directory)

    assert caught.value.reason == "UnsupportedConfig"


def test_a_head_s_own_vocabulary_is_read_from_its_tensors(tmp_path: Path) -> None:
    shapes = {**EAGLE3, "d2t": (8000,), "lm_head.weight": (8000, 4096)}

    assert facts_of(tmp_path, LLAMA_LAYER, shapes).draft_vocabulary_size == 8000


@pytest.mark.parametrize(
    ("config", "shapes", "width"),
    [
        ({}, EAGLE3, 4096),
        ({"hidden_size": 6144}, {**EAGLE3, "fc.weight": (6144, 24576)}, 8192),
        ({"hidden_size": 6144, "target_hidden_size": 8192, "draft_vocab_size": 32000}, NORM, 8192),
        ({}, EAGLE, None),
    ],
)
def test_an_eagle3_head_tells_the_width_of_its_target(
    tmp_path: Path, config: Json, shapes: Shapes, width: int | None
) -> None:
    assert facts_of(tmp_path, {**LLAMA_LAYER, **config}, shapes).target_hidden_size == width


def test_medusa_heads_are_counted_in_the_weights(tmp_path: Path) -> None:
    config = {"medusa_num_heads": 2, "medusa_num_layers": 1, "base_model_name_or_path": "lmsys/vicuna-7b-v1.3"}

    facts = facts_of(tmp_path, config, MEDUSA, weights="medusa_lm_head.pt")

    assert facts.model_dump(exclude_defaults=True, exclude={"weight_bytes", "content_digest"}) == {
        "architecture": "MedusaHeads",
        "kind": "MedusaHeads",
        "vocabulary_size": 32000,
        "layers": 1,
        "hidden_size": 4096,
        "attention_heads": 1,
        "key_value_heads": 1,
        "head_size": 4096,
        "data_type": "float16",
        "context_length": 2**31 - 1,
        "medusa_heads": 4,
        "medusa_layers": 1,
        "declared_base": "lmsys/vicuna-7b-v1.3",
    }


@pytest.mark.parametrize("prefix", ["", "medusa_head."])
@pytest.mark.parametrize("weights", ["medusa_lm_head.safetensors", "medusa_lm_head.pt"])
def test_medusa_heads_are_known_without_a_word_in_the_config(tmp_path: Path, prefix: str, weights: str) -> None:
    shapes = {f"{prefix}{name}": shape for name, shape in MEDUSA.items()}

    facts = facts_of(tmp_path, {"transformers_version": "4.34.0"}, shapes, weights=weights)

    assert (facts.kind, facts.medusa_heads, facts.vocabulary_size) == ("MedusaHeads", 4, 32000)


def test_converted_medusa_heads_are_known(tmp_path: Path) -> None:
    config = {
        "architectures": ["MedusaModel"],
        "model_type": "medusa",
        "num_heads": 5,
        "num_hidden_layers": 1,
        "hidden_size": 4096,
        "vocab_size": 32000,
    }

    facts = facts_of(tmp_path, config, CONVERTED_MEDUSA)

    assert (facts.kind, facts.model_type, facts.medusa_heads) == ("MedusaHeads", "medusa", 5)


def test_medusa_heads_without_weights_of_theirs_are_refused(tmp_path: Path) -> None:
    directory = directory_of(tmp_path, {"medusa_num_heads": 4}, WHOLE)

    with pytest.raises(ProgramFailure, match="the weights hold none"):
        read_facts(directory)


def test_a_drafter_of_recurrent_drafting_is_known(tmp_path: Path) -> None:
    config = {"num_draft_layers": 2, "hidden_size": 4096, "exit_dim": 8192, "vocab_size": 32000, "rnn": True}

    facts = facts_of(tmp_path, config, {"lm_head.weight": (32000, 8192)}, weights="model.pt")

    assert (facts.kind, facts.layers, facts.intermediate_size) == ("ReDrafterHead", 2, 8192)


def test_a_head_in_the_speculators_format_names_its_verifier(tmp_path: Path) -> None:
    config = {
        "architectures": ["Eagle3Speculator"],
        "speculators_model_type": "eagle3",
        "draft_vocab_size": 32000,
        "speculators_config": {"verifier": {"name_or_path": "Qwen/Qwen3-8B", "architectures": ["Qwen3ForCausalLM"]}},
        "transformer_layer_config": {**LLAMA_LAYER, "vocab_size": 151936},
    }

    facts = facts_of(tmp_path, config, {**EAGLE3, "t2d": (151936,)})

    assert (facts.kind, facts.declared_base, facts.vocabulary_size) == ("Eagle3Head", "Qwen/Qwen3-8B", 151936)


def test_a_speculator_of_an_unknown_kind_is_refused(tmp_path: Path) -> None:
    directory = directory_of(tmp_path, {**LLAMA_LAYER, "speculators_model_type": "mlp"}, NORM)

    with pytest.raises(ProgramFailure, match="speculators_model_type must be one of eagle, eagle3"):
        read_facts(directory)


@pytest.mark.parametrize(
    ("config", "layers"),
    [
        ({"num_nextn_predict_layers": 1}, 1),
        ({"mtp_num_hidden_layers": 2}, 2),
        ({"text_config": {"mtp_num_hidden_layers": 1}}, 1),
        ({"num_nextn_predict_layers": 0}, None),
        ({}, None),
    ],
)
def test_next_token_layers_are_counted(tmp_path: Path, config: Json, layers: int | None) -> None:
    assert facts_of(tmp_path, {**LLAMA_LAYER, **config}, WHOLE).next_token_layers == layers


def test_the_facts_of_a_head_fit_into_a_termination_message(tmp_path: Path) -> None:
    longest = "o" * 96 + "/" + "n" * 96
    config = {
        **LLAMA_LAYER,
        "architectures": ["A" * 200],
        "eos_token_id": list(range(100000, 100040)),
        "base_model_name_or_path": longest,
        "quantization_config": {"quant_method": "compressed-tensors"},
        "kv_lora_rank": 512,
        "target_hidden_size": 2**30,
        "num_nextn_predict_layers": 1,
    }
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": {"vocab": {"a": 0}}}))

    facts = read_facts(directory_of(tmp_path, config, EAGLE3), commit="1" * 40).to_wire()

    assert len(encode(Succeeded({"facts": facts}))) <= 1536 + 100

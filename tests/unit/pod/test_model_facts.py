"""What a model directory says of itself."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdec_operator.api.v1alpha1.model_facts import ModelFacts
from specdec_operator.pod.errors import ProgramFailure
from specdec_operator.pod.inputs import InspectInput
from specdec_operator.pod.inspect_model import inspect_model
from specdec_operator.pod.model_facts import Facts, read_facts
from tests.unit.pod.checkpoints import write_weights
from tests.unit.pod.models import CONFIG, TOKENIZER, write_model

if TYPE_CHECKING:
    from pathlib import Path


def reason(directory: Path) -> str:
    with pytest.raises(ProgramFailure) as caught:
        read_facts(directory)
    return caught.value.reason


def test_the_api_parses_what_inspect_emits(tmp_path: Path) -> None:
    result = inspect_model(InspectInput(directory=str(write_model(tmp_path))))

    facts = ModelFacts.model_validate_json(json.dumps(result["facts"]))
    assert (facts.architecture, facts.vocabulary_size, facts.eos_token_ids) == ("LlamaForCausalLM", 512, [2, 3])


def test_every_fact_has_a_place_in_the_api() -> None:
    assert {field.name for field in dataclasses.fields(Facts)} == set(ModelFacts.model_fields)


def test_what_a_model_says_nothing_of_is_left_out(tmp_path: Path) -> None:
    emitted = read_facts(write_model(tmp_path)).to_wire()

    assert not {"kind", "medusaHeads", "declaredBase", "quantization", "nextTokenLayers"} & set(emitted)


def test_key_value_heads_and_head_size_are_derived_where_the_config_is_silent(tmp_path: Path) -> None:
    facts = read_facts(write_model(tmp_path, config={"num_key_value_heads": None}))

    assert (facts.key_value_heads, facts.head_size) == (4, 16)


def test_a_single_end_token_counts_as_a_list(tmp_path: Path) -> None:
    assert read_facts(write_model(tmp_path, config={"eos_token_id": 2})).eos_token_ids == (2,)


def test_the_newer_spelling_of_the_data_type_is_read(tmp_path: Path) -> None:
    config = {"torch_dtype": None, "dtype": "bfloat16"}

    assert read_facts(write_model(tmp_path, config=config)).data_type == "bfloat16"


def test_a_multimodal_config_is_read_one_level_down(tmp_path: Path) -> None:
    config = {"vocab_size": None, "text_config": {"vocab_size": 777}}

    assert read_facts(write_model(tmp_path, config=config)).vocabulary_size == 777


def test_a_head_may_have_no_tokenizer(tmp_path: Path) -> None:
    model = write_model(tmp_path)
    (model / "tokenizer.json").unlink()

    assert read_facts(model).tokenizer_digest == ""


def test_a_directory_without_config_is_no_model(tmp_path: Path) -> None:
    assert reason(tmp_path) == "NotAModel"


@pytest.mark.parametrize("key", ["architectures", "vocab_size", "num_hidden_layers", "hidden_size"])
def test_a_config_that_lacks_a_needed_key_is_unsupported(tmp_path: Path, key: str) -> None:
    assert reason(write_model(tmp_path, config={key: None})) == "UnsupportedConfig"


def test_a_broken_config_is_unreadable(tmp_path: Path) -> None:
    (write_model(tmp_path) / "config.json").write_text("{")

    assert reason(tmp_path) == "UnreadableModel"


def test_weights_of_the_index_are_counted(tmp_path: Path) -> None:
    model = write_model(tmp_path)
    write_weights(model / "part-1.safetensors", size=300)
    (model / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"w": "part-1.safetensors"}}))

    assert read_facts(model).weight_bytes == 300


def test_weights_that_the_index_names_must_be_there(tmp_path: Path) -> None:
    model = write_model(tmp_path)
    (model / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"w": "gone.safetensors"}}))

    assert reason(model) == "WeightsMissing"


@pytest.mark.parametrize(
    "index",
    [
        "[]",
        "7",
        '"text"',
        "null",
        "{",
        "{}",
        "[" * 200_000,
        '{"weight_map":' * 100_000,
        '{"weight_map": []}',
        '{"weight_map": 7}',
        '{"weight_map": {}}',
        '{"weight_map": {"w": 7}}',
        '{"weight_map": {"w": ["model.safetensors"]}}',
        '{"weight_map": {"w": {}}}',
        '{"weight_map": {"w": null}}',
        "9" * 10_000,
        "\ud800",
        "",
    ],
)
@pytest.mark.parametrize("name", ["model.safetensors.index.json", "pytorch_model.bin.index.json"])
def test_an_index_that_is_no_index_is_unreadable(tmp_path: Path, name: str, index: str) -> None:
    model = write_model(tmp_path)
    (model / name).write_bytes(index.encode("utf-8", "surrogatepass"))

    with pytest.raises(ProgramFailure, match=name) as caught:
        read_facts(model)

    assert (caught.value.reason, caught.value.terminal) == ("UnreadableModel", True)


@pytest.mark.parametrize("name", ["../model.safetensors", "/etc/passwd", "\\ud800", ""])
def test_a_file_that_an_index_names_must_lie_in_the_directory(tmp_path: Path, name: str) -> None:
    model = write_model(tmp_path / "model")
    write_weights(tmp_path / "model.safetensors")
    (model / "model.safetensors.index.json").write_text('{"weight_map": {"w": "' + name + '"}}')

    with pytest.raises(ProgramFailure) as caught:
        read_facts(model)

    assert (caught.value.reason, len(caught.value.message.encode()) > 0) == ("WeightsMissing", True)


def test_weights_in_folders_are_another_framework_s(tmp_path: Path) -> None:
    model = write_model(tmp_path)
    (model / "onnx").mkdir()
    (model / "onnx" / "model.safetensors").write_bytes(b"not read")

    assert read_facts(model).weight_bytes == 1000


@pytest.mark.parametrize("name", ["weights.pt", "pytorch_model.bin"])
def test_a_whole_model_s_weights_must_be_readable_too(tmp_path: Path, name: str) -> None:
    model = write_model(tmp_path)
    (model / "model.safetensors").unlink()
    (model / name).write_bytes(b"<!DOCTYPE html>")

    assert reason(model) == "UnreadableModel"


@pytest.mark.parametrize("file", ["config.json", "tokenizer.json", "hf_quant_config.json", "generation_config.json"])
@given(content=st.binary(max_size=40) | st.text(max_size=40).map(lambda text: text.encode("utf-8", "replace")))
def test_whatever_a_file_holds_it_is_named_or_read(
    tmp_path_factory: pytest.TempPathFactory, file: str, content: bytes
) -> None:
    model = write_model(tmp_path_factory.getbasetemp() / f"foreign-{file}", config={"eos_token_id": None})
    (model / file).write_bytes(content)

    with contextlib.suppress(ProgramFailure):
        read_facts(model)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@given(
    changes=st.dictionaries(
        st.sampled_from(
            [
                *CONFIG,
                "model_type",
                "rope_scaling",
                "rope_parameters",
                "layer_types",
                "sliding_window_pattern",
                "text_config",
                "quantization_config",
                "speculators_config",
                "head_dim",
                "kv_lora_rank",
                "qk_rope_head_dim",
                "multi_query",
                "draft_vocab_size",
                "num_nextn_predict_layers",
                "medusa_num_heads",
            ]
        ),
        VALUES,
        max_size=3,
    )
)
def test_whatever_a_config_says_its_facts_fit_the_api_or_it_is_refused(
    tmp_path_factory: pytest.TempPathFactory, changes: dict[str, Any]
) -> None:
    model = write_model(tmp_path_factory.getbasetemp() / "foreign")
    (model / "config.json").write_text(json.dumps({**CONFIG, **changes}))

    try:
        wire = json.dumps(read_facts(model).to_wire())
    except ProgramFailure as failure:
        assert (failure.terminal, len(failure.message.encode()) > 0) == (True, True)  # noqa: PT017 - it may fit as well
    else:
        ModelFacts.model_validate_json(wire)


def test_weights_shipped_twice_count_once(tmp_path: Path) -> None:
    model = write_model(tmp_path)
    write_weights(model / "consolidated.safetensors")

    assert read_facts(model).weight_bytes == 1000


def test_a_model_without_weights_is_refused(tmp_path: Path) -> None:
    model = write_model(tmp_path)
    (model / "model.safetensors").unlink()

    assert reason(model) == "WeightsMissing"


def changed(**changes: Any) -> dict[str, Any]:
    return {**TOKENIZER, **changes}


@pytest.mark.parametrize(
    "tokenizer",
    [
        changed(post_processor={"type": "TemplateProcessing"}),
        changed(model={**TOKENIZER["model"], "merges": [["a", "b"]]}),
        changed(model={**TOKENIZER["model"], "vocab": dict(reversed(TOKENIZER["model"]["vocab"].items()))}),
    ],
    ids=["other template", "merges as pairs", "other order in the file"],
)
def test_tokenizers_whose_tokens_mean_the_same_have_one_digest(tmp_path: Path, tokenizer: dict[str, Any]) -> None:
    one = read_facts(write_model(tmp_path / "one"))
    other = read_facts(write_model(tmp_path / "other", tokenizer=tokenizer))

    assert one.tokenizer_digest == other.tokenizer_digest


@pytest.mark.parametrize(
    "tokenizer",
    [
        changed(added_tokens=[]),
        changed(model={**TOKENIZER["model"], "merges": []}),
        changed(model={**TOKENIZER["model"], "vocab": {"<s>": 0, "a": 2, "b": 1, "ab": 3}}),
    ],
    ids=["added tokens", "merges", "ids"],
)
def test_tokenizers_whose_tokens_differ_have_different_digests(tmp_path: Path, tokenizer: dict[str, Any]) -> None:
    one = read_facts(write_model(tmp_path / "one"))
    other = read_facts(write_model(tmp_path / "other", tokenizer=tokenizer))

    assert one.tokenizer_digest != other.tokenizer_digest


def test_a_sentencepiece_model_is_hashed_as_it_is(tmp_path: Path) -> None:
    model = write_model(tmp_path)
    (model / "tokenizer.json").unlink()
    (model / "tokenizer.model").write_bytes(b"pieces")

    assert len(read_facts(model).tokenizer_digest) == 64


@pytest.mark.parametrize("file", ["config.json", "model.safetensors", "new.txt"])
def test_the_content_digest_follows_every_file(tmp_path: Path, file: str) -> None:
    model = write_model(tmp_path)
    before = read_facts(model).content_digest
    with (model / file).open("a") as opened:
        opened.write(" ")

    assert read_facts(model).content_digest != before


def test_hidden_files_are_no_content(tmp_path: Path) -> None:
    model = write_model(tmp_path)
    before = read_facts(model).content_digest
    (model / ".cache").mkdir()
    (model / ".cache" / "lock").touch()

    assert read_facts(model).content_digest == before

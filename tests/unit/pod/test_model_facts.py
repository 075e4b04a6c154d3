"""What a model directory says of itself."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

import pytest

from specdec_operator.api.v1alpha1.model_facts import ModelFacts
from specdec_operator.pod.errors import ProgramFailure
from specdec_operator.pod.inputs import InspectInput
from specdec_operator.pod.inspect_model import inspect_model
from specdec_operator.pod.model_facts import Facts, read_facts
from tests.unit.pod.models import TOKENIZER, write_model

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
    (model / "part-1.safetensors").write_bytes(b"x" * 10)
    (model / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"w": "part-1.safetensors"}}))

    assert read_facts(model).weight_bytes == 10


def test_weights_that_the_index_names_must_be_there(tmp_path: Path) -> None:
    model = write_model(tmp_path)
    (model / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"w": "gone.safetensors"}}))

    assert reason(model) == "WeightsMissing"


def test_weights_shipped_twice_count_once(tmp_path: Path) -> None:
    model = write_model(tmp_path)
    (model / "consolidated.safetensors").write_bytes(b"x" * 1000)

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

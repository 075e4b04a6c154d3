"""Text to tokens and back."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.runtime.inference.errors import ModelFilesError
from testbed.runtime.inference.tokenizer import TextTokenizer


@given(text=st.text(max_size=40))
def test_any_text_comes_back(tokenizer: TextTokenizer, text: str) -> None:
    if not any(mark in text for mark in ("<s>", "</s>", "<unk>")):
        assert tokenizer.decode(tokenizer.encode(text)) == text


def test_the_begin_mark_comes_first(tokenizer: TextTokenizer) -> None:
    assert tokenizer.encode("Hello!")[0] == tokenizer.bos_id


@pytest.mark.parametrize("name", ["tiny-llama", "tiny-llama-draft", "tiny-llama-other-vocabulary"])
def test_a_models_vocabulary_is_as_large_as_its_configuration_says(models: Path, name: str) -> None:
    said = json.loads((models / name / "config.json").read_text())["vocab_size"]
    assert TextTokenizer.load(models / name).vocabulary_size == said


def test_the_draft_has_the_targets_tokenizer(models: Path) -> None:
    files = [models / name / "tokenizer.json" for name in ("tiny-llama", "tiny-llama-draft")]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_a_model_without_a_tokenizer_is_told(models: Path) -> None:
    with pytest.raises(ModelFilesError, match=r"tokenizer\.json: is missing"):
        TextTokenizer.load(models / "tiny-llama-eagle3")

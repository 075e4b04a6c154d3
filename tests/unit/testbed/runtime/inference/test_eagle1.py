"""EAGLE-1 heads: what they are checked for, and how a tree is drafted."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from testbed.runtime.inference.eagle1 import Eagle1Drafter, Eagle1Head, ranked
from testbed.runtime.inference.errors import ModelFilesError, PairMismatchError
from testbed.runtime.inference.llama import LlamaModel
from testbed.runtime.inference.safetensors import read_tensors, write_tensors
from testbed.runtime.inference.tokenizer import TextTokenizer
from testbed.runtime.inference.tree import DraftTree


@pytest.fixture
def directory(models: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(models / "tiny-llama-eagle", tmp_path / "head"))


def proposed(target: LlamaModel, drafter: Eagle1Drafter, prompt: list[int], depth: int = 4) -> DraftTree:
    run = target.forward(prompt[:-1], target.cache(), capture=(target.final_state,))
    return drafter.begin(target).propose(prompt, run.features, depth)


def test_the_head_is_laid_out_as_published_ones(models: Path) -> None:
    names = set(read_tensors(models / "tiny-llama-eagle" / "model.safetensors"))
    assert {"embed_tokens.weight", "fc.weight", "layers.0.post_attention_layernorm.weight"} <= names
    assert not {"lm_head.weight", "norm.weight", "layers.0.input_layernorm.weight"} & names


def test_a_path_of_a_tree_is_what_a_chain_would_have_drafted(
    target: LlamaModel, eagle1_head: Eagle1Head, tokenizer: TextTokenizer
) -> None:
    prompt = tokenizer.encode("The capital of France is")
    tree = proposed(target, Eagle1Drafter(eagle1_head, ((0,), (1,), (0, 0), (1, 0), (0, 0, 0))), prompt)
    chain = proposed(target, Eagle1Drafter(eagle1_head, ((0,), (0, 0), (0, 0, 0))), prompt)
    assert (tree.tokens[0], tree.tokens[2], tree.tokens[4]) == chain.tokens


def test_a_guess_depends_on_the_branch_that_it_follows(
    target: LlamaModel, eagle1_head: Eagle1Head, tokenizer: TextTokenizer
) -> None:
    prompt = tokenizer.encode("The capital of France is")
    choices = tuple((first,) for first in range(4)) + tuple((first, 0) for first in range(4))
    tree = proposed(target, Eagle1Drafter(eagle1_head, choices), prompt)
    assert len(set(tree.tokens[4:])) > 1


def test_ranks_count_from_the_best() -> None:
    logits = np.asarray([0.5, 2.0, 2.0, 1.0], dtype=np.float32)
    assert [ranked(logits, rank) for rank in range(4)] == [1, 2, 3, 0]


def test_a_bias_of_the_first_layer_is_used_where_there_is_one(
    directory: Path, target: LlamaModel, tokenizer: TextTokenizer
) -> None:
    weights = read_tensors(directory / "model.safetensors")
    write_tensors(directory / "model.safetensors", {**weights, "fc.bias": np.full(64, 40.0, dtype=np.float32)})
    prompt = tokenizer.encode("The capital of France is")
    chain = ((0,), (0, 0))
    biased = proposed(target, Eagle1Drafter(Eagle1Head.load(directory, target), chain), prompt)
    write_tensors(directory / "model.safetensors", weights)
    assert biased != proposed(target, Eagle1Drafter(Eagle1Head.load(directory, target), chain), prompt)


def test_a_head_of_another_hidden_size_is_refused(models: Path, draft: LlamaModel) -> None:
    with pytest.raises(PairMismatchError, match="the head's hidden_size is 64, the target's 32"):
        Eagle1Head.load(models / "tiny-llama-eagle", draft)


@pytest.mark.parametrize(
    ("field", "value", "error", "refusal"),
    [
        ("vocab_size", 500, PairMismatchError, "the head's vocab_size is 500, the target's 512"),
        ("num_hidden_layers", 2, ModelFilesError, "num_hidden_layers is 2; an EAGLE-1 head has 1"),
    ],
)
def test_a_head_that_does_not_fit_is_refused(
    directory: Path, target: LlamaModel, field: str, value: int, error: type[Exception], refusal: str
) -> None:
    file = directory / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {field: value}))
    with pytest.raises(error, match=refusal):
        Eagle1Head.load(directory, target)

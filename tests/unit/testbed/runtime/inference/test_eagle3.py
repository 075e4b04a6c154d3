"""EAGLE-3 heads: what they are checked for, and how they name tokens."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from testbed.runtime.inference.eagle3 import Eagle3Head, default_captured_layers
from testbed.runtime.inference.errors import ModelFilesError, PairMismatchError
from testbed.runtime.inference.llama import LlamaModel
from testbed.runtime.inference.safetensors import read_tensors, write_tensors
from testbed.runtime.inference.speculation import Eagle3Drafter, generate


@pytest.fixture
def directory(models: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(models / "tiny-llama-eagle3", tmp_path / "head"))


def rewrite_config(directory: Path, **fields: object) -> None:
    file = directory / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | fields))


def test_a_reduced_vocabulary_is_mapped_to_the_targets_ids(models: Path, head: Eagle3Head) -> None:
    spoken = np.flatnonzero(read_tensors(models / "tiny-llama-eagle3" / "model.safetensors")["t2d"])
    one_hot = np.eye(len(spoken), dtype=np.float32)
    assert [head.best(row) for row in one_hot] == spoken.tolist()


def test_a_head_of_another_hidden_size_is_refused(models: Path, draft: LlamaModel) -> None:
    with pytest.raises(PairMismatchError, match="the head's hidden_size is 64, the target's 32"):
        Eagle3Head.load(models / "tiny-llama-eagle3", draft)


def test_a_head_of_another_vocabulary_is_refused(directory: Path, target: LlamaModel) -> None:
    rewrite_config(directory, vocab_size=500)
    with pytest.raises(PairMismatchError, match="the head's vocab_size is 500, the target's 512"):
        Eagle3Head.load(directory, target)


def test_a_head_with_two_layers_is_refused(directory: Path, target: LlamaModel) -> None:
    rewrite_config(directory, num_hidden_layers=2)
    with pytest.raises(ModelFilesError, match="num_hidden_layers is 2; an EAGLE-3 head has 1"):
        Eagle3Head.load(directory, target)


def test_a_head_that_reads_deeper_than_the_target_is_refused(directory: Path, target: LlamaModel) -> None:
    rewrite_config(directory, eagle_config={"eagle_aux_hidden_state_layer_ids": [2, 16, 29]})
    with pytest.raises(PairMismatchError, match=r"reads hidden states \[2, 16, 29\]; the target has 4 layers"):
        Eagle3Head.load(directory, target)


def test_a_reduced_vocabulary_without_its_map_is_refused(directory: Path, target: LlamaModel) -> None:
    weights = read_tensors(directory / "model.safetensors")
    del weights["d2t"]
    write_tensors(directory / "model.safetensors", weights)
    with pytest.raises(ModelFilesError, match="tensor 'd2t' is missing"):
        Eagle3Head.load(directory, target)


def test_a_head_serves_only_the_target_it_was_loaded_for(models: Path, head: Eagle3Head) -> None:
    another = LlamaModel.load(models / "tiny-llama")
    with pytest.raises(PairMismatchError, match="loaded for another target"):
        generate(another, [1], max_tokens=4, end_id=2, drafter=Eagle3Drafter(head, 3))


@pytest.mark.parametrize(("depth", "layers"), [(32, (2, 16, 29)), (4, (1, 2, 3)), (3, (1, 1, 2))])
def test_the_layers_read_follow_from_the_targets_depth(depth: int, layers: tuple[int, int, int]) -> None:
    assert default_captured_layers(depth) == layers


def test_a_target_of_two_layers_is_too_shallow() -> None:
    with pytest.raises(PairMismatchError, match="the target has 2 layers"):
        default_captured_layers(2)

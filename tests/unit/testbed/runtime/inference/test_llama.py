"""Llama models: loading, and arithmetic that does not depend on how positions are grouped."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.runtime.inference.errors import ModelFilesError, SequenceTooLongError
from testbed.runtime.inference.llama import LlamaModel
from testbed.runtime.inference.safetensors import read_tensors, write_tensors

TOKENS = st.lists(st.integers(0, 511), min_size=2, max_size=40)


def copy_of(model: Path, folder: Path) -> Path:
    return Path(shutil.copytree(model, folder / "model"))


@settings(max_examples=25, deadline=None)
@given(tokens=TOKENS, data=st.data())
def test_logits_have_the_same_bits_however_positions_are_grouped(
    target: LlamaModel, tokens: list[int], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(1, len(tokens) - 1))
    whole = target.forward(tokens, target.cache()).logits
    cache = target.cache()
    first = target.forward(tokens[:cut], cache).logits
    rest = [target.forward([token], cache).logits for token in tokens[cut:]]
    assert np.concatenate([first, *rest]).tobytes() == whole.tobytes()


def test_truncated_positions_leave_no_trace(target: LlamaModel) -> None:
    cache = target.cache()
    target.forward([1, 50, 60, 70, 80], cache)
    cache.truncate(2)
    again = target.forward([90], cache).logits
    assert again.tobytes() == target.forward([1, 50, 90], target.cache()).logits[-1:].tobytes()


def test_an_early_token_does_not_see_a_later_one(target: LlamaModel) -> None:
    left, right = (target.forward([1, 50, last], target.cache()).logits[:2] for last in (60, 70))
    assert left.tobytes() == right.tobytes()


def test_captured_states_come_side_by_side(target: LlamaModel) -> None:
    both = target.forward([1, 50], target.cache(), capture=(1, 4)).features
    single = [target.forward([1, 50], target.cache(), capture=(layer,)).features for layer in (1, 4)]
    assert both.tobytes() == np.concatenate(single, axis=-1).tobytes()


def test_the_first_captured_state_is_the_embedding(target: LlamaModel) -> None:
    features = target.forward([1, 50], target.cache(), capture=(0,)).features
    assert features.tobytes() == target.embed([1, 50]).tobytes()


def test_a_sequence_beyond_the_last_position_is_refused(untrained: LlamaModel) -> None:
    with pytest.raises(SequenceTooLongError, match="needs 97 tokens; the model's limit is 96"):
        untrained.forward([1] * 97, untrained.cache())


def test_sharded_weights_give_the_same_model(models: Path, target: LlamaModel, tmp_path: Path) -> None:
    directory = copy_of(models / "tiny-llama", tmp_path)
    weights = read_tensors(directory / "model.safetensors")
    (directory / "model.safetensors").unlink()
    names = sorted(weights)
    shards = {"model-1-of-2.safetensors": names[:9], "model-2-of-2.safetensors": names[9:]}
    for shard, part in shards.items():
        write_tensors(directory / shard, {name: weights[name] for name in part})
    index = {"weight_map": {name: shard for shard, part in shards.items() for name in part}}
    (directory / "model.safetensors.index.json").write_text(json.dumps(index))
    logits = LlamaModel.load(directory).forward([1, 50], target.cache()).logits
    assert logits.tobytes() == target.forward([1, 50], target.cache()).logits.tobytes()


def test_another_architecture_is_refused_by_name(models: Path) -> None:
    with pytest.raises(ModelFilesError, match=r"config\.json: architectures is \['LlamaForCausalLMEagle3'\]"):
        LlamaModel.load(models / "tiny-llama-eagle3")


def test_a_missing_field_is_named(models: Path, tmp_path: Path) -> None:
    directory = copy_of(models / "tiny-llama", tmp_path)
    fields = json.loads((directory / "config.json").read_text())
    del fields["vocab_size"]
    (directory / "config.json").write_text(json.dumps(fields))
    with pytest.raises(ModelFilesError, match=r"config\.json: lacks the field 'vocab_size'"):
        LlamaModel.load(directory)


def test_weights_of_another_shape_are_named(models: Path, tmp_path: Path) -> None:
    directory = copy_of(models / "tiny-llama", tmp_path)
    shutil.copy(models / "tiny-llama-draft" / "model.safetensors", directory / "model.safetensors")
    with pytest.raises(ModelFilesError, match=r"has shape \[512, 32\]; config.json says \[512, 64\]"):
        LlamaModel.load(directory)


def test_a_missing_directory_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(ModelFilesError, match=r"config\.json: can't be read \(No such file"):
        LlamaModel.load(tmp_path / "nowhere")

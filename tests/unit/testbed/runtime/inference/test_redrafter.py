"""ReDrafter: what a drafter is checked for, and its beams."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from testbed.runtime.inference.errors import ModelFilesError, PairMismatchError
from testbed.runtime.inference.llama import LlamaModel
from testbed.runtime.inference.redrafter import RedrafterConfig, RedrafterDrafter, RedrafterModel
from testbed.runtime.inference.safetensors import read_directory


@pytest.fixture
def directory(models: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(models / "tiny-llama-redrafter", tmp_path / "drafter"))


@pytest.fixture(scope="module")
def hidden(target: LlamaModel) -> np.ndarray:
    return target.forward([1, 50], target.cache(), capture=(target.final_state,)).features


def test_one_beam_takes_the_likeliest_token_each_time(redrafter_model: RedrafterModel, hidden: np.ndarray) -> None:
    model = redrafter_model
    state, expected = model.target.embed([60]), list[int]()
    for _ in range(3):
        expected.append(int(model.scores(state, hidden[-1:])[0].argmax()))
        state = model.advance(state, expected[-1:])
    tree = RedrafterDrafter(model, beams=1, draft_length=3).propose([1, 50, 60], hidden, 3)
    assert list(tree.tokens) == expected


def test_beams_are_so_many_paths_of_the_draft_length(redrafter_model: RedrafterModel, hidden: np.ndarray) -> None:
    tree = RedrafterDrafter(redrafter_model, beams=4, draft_length=3).propose([1, 50, 60], hidden, 3)
    leaves = set(range(tree.size)) - set(tree.parents)
    assert (len(leaves), tree.depth) == (4, 3)


def test_scores_are_log_probabilities(redrafter_model: RedrafterModel, hidden: np.ndarray) -> None:
    scores = redrafter_model.scores(redrafter_model.target.embed([60]), hidden[-1:])
    assert float(np.exp(scores).sum()) == pytest.approx(1.0, abs=1e-4)


def test_a_drafter_of_another_hidden_size_is_refused(models: Path, draft: LlamaModel) -> None:
    folder = models / "tiny-llama-redrafter"
    with pytest.raises(PairMismatchError, match="the drafter's hidden_size is 64, the target's 32"):
        RedrafterModel(RedrafterConfig.read(folder), read_directory(folder), draft)


def test_narrower_output_layers_need_a_projection(directory: Path, target: LlamaModel) -> None:
    config = RedrafterConfig(num_draft_layers=2, hidden_size=64, exit_dim=96, rnn=True)
    with pytest.raises(ModelFilesError, match=r"input_proj\.weight"):
        RedrafterModel(config, read_directory(directory), target)


@pytest.mark.parametrize(("change", "refusal"), [({"rnn": False}, "rnn is false"), ({"exit_dim": None}, "exit_dim")])
def test_a_drafter_that_is_not_known_is_refused(directory: Path, change: dict[str, object], refusal: str) -> None:
    file = directory / "config.json"
    fields = {**json.loads(file.read_text()), **change}
    file.write_text(json.dumps({name: value for name, value in fields.items() if value is not None}))
    with pytest.raises(ModelFilesError, match=refusal):
        RedrafterConfig.read(directory)

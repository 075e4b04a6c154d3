"""Multi-token prediction: the target's own extra layer drafts, and the answer stays the target's."""

import json
import shutil
from pathlib import Path

import pytest

from testbed.runtime.inference.errors import ModelFilesError, PairMismatchError
from testbed.runtime.inference.llama import LlamaModel
from testbed.runtime.inference.mtp import MultiTokenDrafter, MultiTokenLayer, load_target, predicted_layers
from testbed.runtime.inference.speculation import generate
from testbed.runtime.inference.tokenizer import TextTokenizer

END = 2
QUESTIONS = ("What is speculative decoding?", "The capital of France is", "Why is the sky blue?", "Tell me a story.")


@pytest.fixture(scope="module")
def own_layer(models: Path) -> MultiTokenLayer:
    return MultiTokenLayer.load(models / "tiny-llama-mtp", load_target(models / "tiny-llama-mtp"))


@pytest.mark.parametrize("length", [1, 3])
def test_the_layer_changes_no_answer_and_agrees_often_but_not_always(
    own_layer: MultiTokenLayer, target: LlamaModel, tokenizer: TextTokenizer, length: int
) -> None:
    drafter = MultiTokenDrafter(own_layer, length)
    prompts = [tokenizer.encode(question) for question in QUESTIONS]
    plain = [generate(target, prompt, max_tokens=48, end_id=END) for prompt in prompts]
    said = [generate(own_layer.target, prompt, max_tokens=48, end_id=END, drafter=drafter) for prompt in prompts]
    rate = sum(each.accepted for each in said) / sum(each.drafted for each in said)
    assert ([each.tokens for each in said], 0.3 < rate < 1.0) == ([each.tokens for each in plain], True)


def test_a_model_says_how_many_such_layers_it_has(models: Path) -> None:
    assert (predicted_layers(models / "tiny-llama-mtp"), predicted_layers(models / "tiny-llama")) == (1, 0)


def test_a_model_without_the_layer_is_refused(models: Path, target: LlamaModel) -> None:
    with pytest.raises(ModelFilesError, match="num_nextn_predict_layers is not set"):
        MultiTokenLayer.load(models / "tiny-llama", target)


def test_the_layer_drafts_for_its_own_target_only(own_layer: MultiTokenLayer, target: LlamaModel) -> None:
    with pytest.raises(PairMismatchError, match="another target"):
        MultiTokenDrafter(own_layer, 1).begin(target)


def test_a_model_with_experts_is_refused(models: Path, tmp_path: Path) -> None:
    shutil.copytree(models / "tiny-llama-mtp", tmp_path / "model")
    config = tmp_path / "model" / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"first_k_dense_replace": 1}))
    with pytest.raises(ModelFilesError, match="dense layers"):
        load_target(tmp_path / "model")


def test_a_draft_length_of_zero_is_refused(own_layer: MultiTokenLayer) -> None:
    with pytest.raises(ValueError, match="max_draft_tokens is 0"):
        MultiTokenDrafter(own_layer, 0)

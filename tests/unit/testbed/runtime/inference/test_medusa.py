"""MEDUSA heads: how many there are, and what a tree is made of."""

import json
from pathlib import Path

import numpy as np
import pytest

from testbed.runtime.inference.errors import ModelFilesError
from testbed.runtime.inference.llama import LlamaModel
from testbed.runtime.inference.medusa import MedusaDrafter, MedusaHeads, read_heads, shipped_heads
from testbed.runtime.inference.tree import ROOT

CHOICES = ((0,), (1,), (0, 0), (1, 0))


def test_the_weights_hold_more_heads_than_config_json_says(models: Path) -> None:
    directory = models / "tiny-llama-medusa"
    declared = json.loads((directory / "config.json").read_text())
    assert (declared["medusa_num_heads"], shipped_heads(list(read_heads(directory)))) == (2, 4)


def test_more_heads_than_the_weights_hold_are_refused(models: Path, target: LlamaModel) -> None:
    with pytest.raises(ModelFilesError, match="5 MEDUSA heads are wanted, but the weights hold 4"):
        MedusaHeads(read_heads(models / "tiny-llama-medusa"), target, heads=5, layers=1)


def test_heads_of_another_target_are_refused(models: Path, draft: LlamaModel) -> None:
    with pytest.raises(ModelFilesError, match=r"tensor '0\.0\.linear\.weight' has shape \[64, 64\]"):
        MedusaHeads(read_heads(models / "tiny-llama-medusa"), draft, heads=4, layers=1)


def test_a_guess_is_of_the_head_of_its_level_whatever_it_follows(target: LlamaModel, medusa_heads: MedusaHeads) -> None:
    hidden = target.forward([1, 50], target.cache(), capture=(target.final_state,)).features
    tree = MedusaDrafter(medusa_heads, CHOICES).propose([1, 50, 60], hidden, 2)
    best = [int(np.argmax(logits)) for logits in medusa_heads.guesses(hidden[-1:])]
    assert (tree.tokens[0], tree.tokens[2], tree.tokens[3]) == (best[0], best[1], best[1])
    assert tree.parents == (ROOT, ROOT, 0, 1)

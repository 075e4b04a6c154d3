"""The tiny models, loaded once, and an untrained pair."""

from pathlib import Path

import numpy as np
import pytest

from testbed.hub.server import REPOSITORIES_FILE
from testbed.runtime.inference.eagle1 import Eagle1Head
from testbed.runtime.inference.eagle3 import Eagle3Head
from testbed.runtime.inference.llama import LlamaConfig, LlamaModel
from testbed.runtime.inference.medusa import MedusaHeads, read_heads
from testbed.runtime.inference.redrafter import RedrafterConfig, RedrafterModel
from testbed.runtime.inference.safetensors import read_directory
from testbed.runtime.inference.tokenizer import TextTokenizer


@pytest.fixture(scope="session")
def models() -> Path:
    return REPOSITORIES_FILE.parent / "models" / "specdec-testbed"


@pytest.fixture(scope="session")
def target(models: Path) -> LlamaModel:
    return LlamaModel.load(models / "tiny-llama")


@pytest.fixture(scope="session")
def draft(models: Path) -> LlamaModel:
    return LlamaModel.load(models / "tiny-llama-draft")


@pytest.fixture(scope="session")
def head(models: Path, target: LlamaModel) -> Eagle3Head:
    return Eagle3Head.load(models / "tiny-llama-eagle3", target)


@pytest.fixture(scope="session")
def eagle1_head(models: Path, target: LlamaModel) -> Eagle1Head:
    return Eagle1Head.load(models / "tiny-llama-eagle", target)


@pytest.fixture(scope="session")
def medusa_heads(models: Path, target: LlamaModel) -> MedusaHeads:
    return MedusaHeads(read_heads(models / "tiny-llama-medusa"), target, heads=4, layers=1)


@pytest.fixture(scope="session")
def redrafter_model(models: Path, target: LlamaModel) -> RedrafterModel:
    directory = models / "tiny-llama-redrafter"
    return RedrafterModel(RedrafterConfig.read(directory), read_directory(directory), target)


@pytest.fixture(scope="session")
def tokenizer(models: Path) -> TextTokenizer:
    return TextTokenizer.load(models / "tiny-llama")


@pytest.fixture(scope="session")
def untrained() -> LlamaModel:
    """A model of random weights with the target's vocabulary: as bad a draft as there is."""
    config = LlamaConfig(
        hidden_size=24,
        intermediate_size=40,
        num_hidden_layers=2,
        num_attention_heads=6,
        num_key_value_heads=3,
        head_dim=4,
        vocab_size=512,
        max_position_embeddings=96,
        rms_norm_eps=1e-5,
        rope_theta=10000.0,
        tie_word_embeddings=True,
        bos_token_id=1,
        eos_token_id=2,
    )
    random = np.random.default_rng(3)
    shapes = {"model.embed_tokens.weight": (512, 24), "model.norm.weight": (24,)}
    for layer in range(2):
        prefix = f"model.layers.{layer}."
        shapes |= {
            prefix + "input_layernorm.weight": (24,),
            prefix + "post_attention_layernorm.weight": (24,),
            prefix + "self_attn.q_proj.weight": (24, 24),
            prefix + "self_attn.k_proj.weight": (12, 24),
            prefix + "self_attn.v_proj.weight": (12, 24),
            prefix + "self_attn.o_proj.weight": (24, 24),
            prefix + "mlp.gate_proj.weight": (40, 24),
            prefix + "mlp.up_proj.weight": (40, 24),
            prefix + "mlp.down_proj.weight": (24, 40),
        }
    return LlamaModel(config, {name: random.normal(size=shape) for name, shape in shapes.items()})

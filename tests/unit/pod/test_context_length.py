"""How long a text a model takes, as published configurations write it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from specdec_operator.pod.errors import ProgramFailure
from specdec_operator.pod.model_facts import read_facts
from tests.unit.pod.models import write_model

if TYPE_CHECKING:
    from pathlib import Path

Json = dict[str, Any]


def scaled(length: int | None, **scaling: Any) -> Json:
    return {"max_position_embeddings": length, "rope_scaling": scaling}


@pytest.mark.parametrize(
    ("config", "length"),
    [
        ({"max_position_embeddings": 4096, "rope_scaling": None}, 4096),
        (scaled(4096, type="linear", factor=4.0), 16384),
        (scaled(4096, rope_type="linear", factor=2.5), 10240),
        (scaled(4096, type="dynamic", factor=2), 8192),
        (scaled(4096, type="yarn", factor=32.0, original_max_position_embeddings=4096), 131072),
        (scaled(131072, rope_type="yarn", factor=4.0, original_max_position_embeddings=32768), 131072),
        (scaled(32768, rope_type="yarn", factor=4.0), 131072),
        (scaled(131072, rope_type="llama3", factor=8.0, original_max_position_embeddings=8192), 131072),
        (scaled(131072, type="su", factor=4.0), 131072),
        (scaled(131072, type="longrope", short_factor=[1.0], long_factor=[2.0], factor=32.0), 131072),
        (scaled(32768, type="mrope", mrope_section=[16, 24, 24]), 32768),
        (scaled(32768, rope_type="default"), 32768),
        (scaled(None, type="linear", factor=4.0), 8192),
        ({"max_position_embeddings": 4096, "rope_parameters": {"rope_type": "linear", "factor": 4.0}}, 16384),
        ({"max_position_embeddings": 4096, "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}}, 4096),
        (
            {
                "max_position_embeddings": 4096,
                "rope_parameters": {
                    "full_attention": {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 4096},
                    "sliding_attention": {"rope_type": "default"},
                },
            },
            32768,
        ),
        ({"model_type": "gemma3_text", **scaled(131072, rope_type="linear", factor=8.0)}, 131072),
        ({"text_config": scaled(4096, type="linear", factor=4.0), "max_position_embeddings": None}, 16384),
        ({"max_position_embeddings": 4096, "rope_scaling": "linear"}, 4096),
    ],
)
def test_the_context_is_what_the_rotary_embedding_stretches_it_to(tmp_path: Path, config: Json, length: int) -> None:
    assert read_facts(write_model(tmp_path, config=config)).context_length == length


@pytest.mark.parametrize(
    ("config", "length"),
    [
        (scaled(32768, rope_type="yarn", factor=4.0), 32768),
        (scaled(131072, rope_type="yarn", factor=4.0, original_max_position_embeddings=32768), None),
        (scaled(4096, rope_type="linear", factor=4.0), None),
        ({}, None),
    ],
)
def test_what_the_llm_api_takes_is_told_where_it_is_less(tmp_path: Path, config: Json, length: int | None) -> None:
    assert read_facts(write_model(tmp_path, config=config)).unstretched_context_length == length


@pytest.mark.parametrize(
    "scaling",
    [
        {"type": "linear", "factor": "4"},
        {"type": "linear", "factor": 0},
        {"type": "linear", "factor": -2.0},
        {"type": "linear", "factor": True},
        {"type": "linear", "factor": float("inf")},
        {"type": "linear", "factor": float("nan")},
        {"type": "linear", "factor": 10**400},
        {"type": "linear", "factor": 2.0**30},
        {"type": "linear", "factor": 1e-9},
        {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": float("nan")},
        {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": "4096"},
    ],
)
def test_scaling_that_yields_no_length_is_refused(tmp_path: Path, scaling: Json) -> None:
    with pytest.raises(ProgramFailure, match="rope_scaling must be") as caught:
        read_facts(write_model(tmp_path, config=scaled(4096, **scaling)))

    assert caught.value.reason == "UnsupportedConfig"

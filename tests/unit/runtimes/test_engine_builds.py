from __future__ import annotations

from collections import Counter
from typing import get_args

import pytest

from specdec_operator.api.v1alpha1.quantization import QuantizationFormat
from specdec_operator.api.v1alpha1.speculative_model import ENGINE_METHODS
from specdec_operator.runtimes.engine_builds import engine_builds


def test_an_architecture_is_of_one_family() -> None:
    assert max(Counter(name for f in engine_builds().families for name in f.architectures).values()) == 1


def test_every_format_is_made_by_the_quantizer_or_a_converter() -> None:
    formats = engine_builds().formats

    assert set(formats) == set(get_args(QuantizationFormat))
    assert all(bool(made.quantizer) != bool(made.converter) for made in formats.values())


@pytest.mark.parametrize("method", [*ENGINE_METHODS, "None"])
def test_every_method_of_the_engine_backend_has_a_mode(method: str) -> None:
    assert any(name == method and build.mode for name, build in engine_builds().methods.items())


def test_an_unknown_architecture_has_no_family() -> None:
    assert engine_builds().family("MambaForCausalLM") is None

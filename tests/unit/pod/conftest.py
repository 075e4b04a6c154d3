"""Fixtures of the programs' tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.pod.tools import Image

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Image:
    """An image without GPU and without TensorRT-LLM."""
    return Image(tmp_path / "image", monkeypatch)

"""The examples' manifests, as reviewed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.golden.manifests import EXAMPLES, HOW_TO_UPDATE, golden_file, golden_text

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_an_example_renders_as_reviewed(example: Path) -> None:
    assert golden_text(example) == golden_file(example).read_text(encoding="utf-8"), HOW_TO_UPDATE


def test_every_golden_file_has_its_example() -> None:
    written = {file.name for file in golden_file(EXAMPLES[0]).parent.glob("*.yaml")}

    assert written == {example.name for example in EXAMPLES}

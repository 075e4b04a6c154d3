"""Nothing is left out: each example, method and release is held against contracts."""

from __future__ import annotations

import re
from typing import Final

import pytest

from tests.upstream.contracts import contracts
from tests.upstream.rendering import EXAMPLES, ROOT, cases, releases, served

BACKENDS: Final = {"TensorRTEngine": "engine", "LLMAPI": "llm_api", "VLLM": "vllm"}
FOLDERS: Final = (*BACKENDS.values(), "openai")


def test_every_example_is_a_case() -> None:
    examples = {file.stem for file in EXAMPLES.glob("*.yaml")}

    assert not examples - {case.example for folder in FOLDERS for case in cases(folder)}


@pytest.mark.parametrize(("backend", "folder"), BACKENDS.items())
def test_every_method_that_the_documentation_offers_is_a_case(backend: str, folder: str) -> None:
    page = (ROOT / "docs" / "capabilities.md").read_text(encoding="utf-8")
    offered = set(re.findall(rf"^\| `(\w+)` \| `{backend}` \| (?!refused)", page, re.MULTILINE))

    assert offered
    assert not offered - {case.method for case in cases(folder)}


@pytest.mark.parametrize("release", releases())
@pytest.mark.parametrize("folder", FOLDERS)
def test_what_no_contract_speaks_of_is_not_served(folder: str, release: str) -> None:
    known = any(contract.evidence(release) for contract in contracts() if contract.file.parent.name == folder)

    assert known or not served(folder, release)

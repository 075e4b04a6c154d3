"""The documentation's marks of what is known from where, against the contracts' own evidence."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import pytest

from tests.upstream.contracts import contracts
from tests.upstream.rendering import ROOT, releases

if TYPE_CHECKING:
    from collections.abc import Mapping

LETTERS: Final[Mapping[str, str]] = {"llm_api": "l", "engine": "e", "vllm": "v"}
"""The folder of a backend's contracts, and its letter in the documentation."""


@pytest.fixture(scope="module")
def marks() -> Mapping[str, set[str]]:
    """Per release every letter that stands in a cell of it: a capital one if it was read at the tag."""
    page = (ROOT / "docs" / "capabilities.md").read_text(encoding="utf-8")
    grid = page.partition("## By release")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (\d\d\.\d\d) \|(.*)$", grid, re.MULTILINE)
    return {release: set(re.findall(r"[A-Za-z]", cells)) for release, cells in rows}


@pytest.mark.parametrize("release", releases())
def test_a_cell_is_marked_as_read_only_if_all_its_contracts_were(marks: Mapping[str, set[str]], release: str) -> None:
    told = {letter for letter in LETTERS.values() if letter.upper() in marks[release]}
    proven = {letter for folder, letter in LETTERS.items() if _is_read(folder, release)}

    assert told == {letter for letter in proven if {letter, letter.upper()} & marks[release]}


def _is_read(folder: str, release: str) -> bool:
    """Whether each of a backend's contracts speaks of a release, and was read at its tag."""
    known = [contract.evidence(release) for contract in contracts() if contract.file.parent.name == folder]
    return bool(known) and all(evidence == "read" for evidence in known)

"""The contracts themselves: each row says where it was read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.upstream import contracts
from tests.upstream.contracts import ContractError, contract

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = {"repository": "a/b", "path": "c", "evidence": "read", "at": {"25.01": "v1 of 2025-01-01"}}


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Writes a contract of one row with a source that differs from a good one."""
    monkeypatch.setattr(contracts, "ROOT", tmp_path)

    def write(**changes: object) -> str:
        source = {key: value for key, value in {**SOURCE, **changes}.items() if value is not None}
        name = f"{len(list(tmp_path.iterdir()))}.yaml"
        (tmp_path / name).write_text(yaml.safe_dump([{"sources": [source], "declares": {}}]))
        return name

    return write


def test_every_contract_can_be_read() -> None:
    assert list(contracts.contracts())


@pytest.mark.parametrize(
    "changes",
    [
        {"path": None},
        {"evidence": "guessed"},
        {"evidence": "inferred"},
        {"because": "it was read"},
        {"at": {"25.01": "v1"}},
    ],
)
def test_a_row_without_its_source_is_refused(written: Any, changes: dict[str, Any]) -> None:
    with pytest.raises(ContractError):
        contract(written(**changes))


def test_a_release_that_no_row_speaks_of_is_an_error(written: Any) -> None:
    with pytest.raises(ContractError, match=r"no row for 25\.02"):
        contract(written()).of("25.02")

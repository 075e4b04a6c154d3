"""Checking a published engine without a GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from specdec_operator.pod.errors import ProgramFailure
from specdec_operator.pod.inputs import VerifyEngineInput
from specdec_operator.pod.model_files import MANIFEST_NAME
from specdec_operator.pod.verify_engine import verify_engine
from tests.unit.pod.tools import engine_config, publish_engine

if TYPE_CHECKING:
    from pathlib import Path


def reason(directory: Path, *, ranks: int = 1, digest: str = "") -> str:
    with pytest.raises(ProgramFailure) as caught:
        verify_engine(VerifyEngineInput(directory=str(directory), ranks=ranks, digest=digest))
    return caught.value.reason


def test_a_whole_engine_is_accepted(tmp_path: Path) -> None:
    digest = publish_engine(tmp_path / "e", ranks=2)

    result = verify_engine(VerifyEngineInput(directory=str(tmp_path / "e"), ranks=2, digest=digest))
    assert result == {"digest": digest, "bytes": len(engine_config()) + 16, "ranks": 2}


def test_no_manifest_is_no_engine(tmp_path: Path) -> None:
    publish_engine(tmp_path / "e")
    (tmp_path / "e" / MANIFEST_NAME).unlink()

    assert reason(tmp_path / "e") == "EngineMissing"


def test_a_cut_engine_is_damaged(tmp_path: Path) -> None:
    publish_engine(tmp_path / "e")
    (tmp_path / "e" / "rank0.engine").write_text("eng")

    assert reason(tmp_path / "e") == "EngineDamaged"


def test_a_changed_config_is_damaged(tmp_path: Path) -> None:
    publish_engine(tmp_path / "e")
    (tmp_path / "e" / "config.json").write_text(engine_config(version="1.2.0"))

    assert reason(tmp_path / "e") == "EngineDamaged"


@pytest.mark.parametrize("ranks", [1, 3])
def test_another_number_of_ranks_is_damaged(tmp_path: Path, ranks: int) -> None:
    publish_engine(tmp_path / "e", ranks=2)

    assert reason(tmp_path / "e", ranks=ranks) == "EngineDamaged"


def test_another_digest_is_damaged(tmp_path: Path) -> None:
    publish_engine(tmp_path / "e")

    assert reason(tmp_path / "e", digest="0" * 64) == "EngineDamaged"

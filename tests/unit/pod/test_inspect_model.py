from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from specdec_operator.pod.errors import ProgramFailure
from specdec_operator.pod.inputs import InspectInput
from specdec_operator.pod.inspect_model import inspect_model

if TYPE_CHECKING:
    from pathlib import Path


def texts(directory: Path) -> dict[str, str]:
    found: dict[str, str] = inspect_model(InspectInput(directory=str(directory), content="DataSet"))["dataSet"]
    return found


def test_texts_need_no_model_s_files(tmp_path: Path) -> None:
    (tmp_path / "train.parquet").write_bytes(b"text")

    assert texts(tmp_path).keys() == {"contentDigest"}


def test_texts_of_another_size_are_others(tmp_path: Path) -> None:
    (tmp_path / "train.parquet").write_bytes(b"text")
    before = texts(tmp_path)
    (tmp_path / "train.parquet").write_bytes(b"longer text")

    assert texts(tmp_path) != before


def test_a_directory_without_texts_is_refused_with_the_field(tmp_path: Path) -> None:
    with pytest.raises(ProgramFailure) as caught:
        texts(tmp_path)

    assert (caught.value.reason, caught.value.terminal) == ("DataSetEmpty", True)
    assert "quantization.calibration.source.persistentVolumeClaim" in caught.value.message

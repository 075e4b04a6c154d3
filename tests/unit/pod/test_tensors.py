"""Names and shapes of tensors, from weight files whose weights are never read."""

from __future__ import annotations

import pickle
import struct
import zipfile
from typing import TYPE_CHECKING

import pytest

from specdec_operator.pod.errors import ProgramFailure
from specdec_operator.pod.tensors import read_shapes
from tests.unit.pod.checkpoints import pickled, write_checkpoint, write_legacy_checkpoint, write_safetensors

if TYPE_CHECKING:
    from pathlib import Path

SHAPES: dict[str, tuple[int, ...]] = {"fc.weight": (64, 128), "fc.bias": (64,), "count": ()}


def test_a_safetensors_header_tells_names_and_shapes(tmp_path: Path) -> None:
    write_safetensors(tmp_path / "model.safetensors", SHAPES)

    assert read_shapes(tmp_path / "model.safetensors") == SHAPES


@pytest.mark.parametrize("protocol", [1, 2, 4, 5])
def test_a_checkpoint_s_index_tells_names_and_shapes(tmp_path: Path, protocol: int) -> None:
    write_checkpoint(tmp_path / "pytorch_model.bin", SHAPES, protocol=protocol)

    assert read_shapes(tmp_path / "pytorch_model.bin") == SHAPES


def test_a_checkpoint_from_before_the_archive_format_is_read_too(tmp_path: Path) -> None:
    write_legacy_checkpoint(tmp_path / "medusa_lm_head.pt", SHAPES)

    assert read_shapes(tmp_path / "medusa_lm_head.pt") == SHAPES


def test_names_of_nested_tensors_are_joined(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "model.pt", {"step": 3, "state": {"0": [(2, 3), "text"]}, "flag": True, "none": None})

    assert read_shapes(tmp_path / "model.pt") == {"state.0.0": (2, 3)}


class _Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return print, ("this must never be called",)


def test_nothing_that_an_index_names_is_called(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with zipfile.ZipFile(tmp_path / "model.pt", "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps({"a": _Evil()}))

    assert (read_shapes(tmp_path / "model.pt"), capsys.readouterr().out) == ({}, "")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("model.safetensors", b"x" * 1000),
        ("model.safetensors", b""),
        ("model.safetensors", struct.pack("<Q", 2) + b"[]"),
        ("model.bin", b""),
        ("model.bin", b"x" * 1000),
        ("model.bin", pickled({"a": (1,)}, protocol=2)[:-30]),
        ("model.bin", b"PK\x05\x06" + b"\0" * 18),
        ("model.bin", b"\x80\x02\x80\x02.\x80\x02.)."),
    ],
)
def test_what_is_no_weight_file_is_named(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)

    with pytest.raises(ProgramFailure, match=name) as caught:
        read_shapes(tmp_path / name)

    assert caught.value.reason == "UnreadableModel"

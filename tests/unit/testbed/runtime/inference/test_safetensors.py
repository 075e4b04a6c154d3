"""The safetensors format: what is written is read, and damage is told."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.runtime.inference.errors import ModelFilesError
from testbed.runtime.inference.safetensors import FloatType, read_directory, read_tensors, write_tensors


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "model.safetensors"


@pytest.mark.parametrize("dtype", ["F32", "F16", "BF16"])
def test_floats_that_the_type_can_hold_come_back_unchanged(file: Path, dtype: FloatType) -> None:
    values = np.array([[0.0, -1.5, 2.0], [0.25, -0.0, 96.0]], dtype=np.float32)
    write_tensors(file, {"a": values}, dtype=dtype)
    assert read_tensors(file)["a"].tobytes() == values.tobytes()


def test_integers_and_truth_values_keep_their_types(file: Path) -> None:
    write_tensors(file, {"d2t": np.arange(3), "t2d": np.array([True, False])}, dtype="F16")
    assert {name: tensor.dtype.str for name, tensor in read_tensors(file).items()} == {"d2t": "<i8", "t2d": "|b1"}


@given(value=st.floats(min_value=-(2.0**90), max_value=2.0**90, width=32))
def test_bfloat16_rounds_to_within_one_part_in_256(tmp_path_factory: pytest.TempPathFactory, value: float) -> None:
    file = tmp_path_factory.getbasetemp() / "rounded.safetensors"
    write_tensors(file, {"a": np.array([value], dtype=np.float32)}, dtype="BF16")
    assert float(read_tensors(file)["a"][0]) == pytest.approx(value, rel=2**-8, abs=1e-37)


def test_equal_content_gives_equal_bytes(file: Path, tmp_path: Path) -> None:
    tensors = {"b": np.ones(2), "a": np.zeros((2, 2))}
    write_tensors(file, tensors)
    write_tensors(tmp_path / "again", dict(reversed(tensors.items())))
    assert file.read_bytes() == (tmp_path / "again").read_bytes()


def test_a_file_cut_off_is_told_with_the_tensor(file: Path) -> None:
    write_tensors(file, {"a": np.ones(100)})
    file.write_bytes(file.read_bytes()[:-8])
    with pytest.raises(ModelFilesError, match="is cut off inside tensor 'a'"):
        read_tensors(file)


@pytest.mark.parametrize("content", [b"", b"no", b"\x05" + b"\0" * 7 + b"[1,2]", b"\xff" * 64])
def test_what_is_no_safetensors_file_is_told(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    with pytest.raises(ModelFilesError, match="is not a safetensors file"):
        read_tensors(file)


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors.index.json").write_text('{"weight_map": {"a": "one.safetensors"}}')
    with pytest.raises(ModelFilesError, match=r"one\.safetensors: can't be read"):
        read_directory(tmp_path)

"""Names and shapes of tensors, from weight files whose weights are never read."""

from __future__ import annotations

import errno
import os
import pickle
import struct
import zipfile
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdec_operator.pod.errors import ProgramFailure
from specdec_operator.pod.tensors import read_shapes
from tests.unit.pod.checkpoints import (
    Shapes,
    pickled,
    write_checkpoint,
    write_legacy_checkpoint,
    write_safetensors,
    write_weights,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SHAPES: Shapes = {"fc.weight": (64, 128), "fc.bias": (64,), "count": ()}


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


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"a" * 64 + b"\nsize 4976698672\n"
PAGE = b"\n<!DOCTYPE html><html><head><title>Sign in</title></head></html>"


def header(text: str | bytes) -> bytes:
    content = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(content)) + content


def entry(shape: str = "[2]", offsets: str = "[0, 0]") -> bytes:
    return header('{"w": {"dtype": "U8", "shape": ' + shape + ', "data_offsets": ' + offsets + "}}")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("model.safetensors", b"x" * 1000),
        ("model.safetensors", b"\0" * 7),
        ("model.safetensors", header("[]")),
        ("model.safetensors", header("{")),
        ("model.safetensors", header("7")),
        ("model.safetensors", header("[" * 200_000)),
        ("model.safetensors", header('{"a":' * 200_000)),
        ("model.safetensors", header(b'{"\xff": {}}')),
        ("model.safetensors", header('{"w": {"shape": [1], "data_offsets": [0, 0]}, "w": {}}')),
        ("model.safetensors", header('{"w": []}')),
        ("model.safetensors", header('{"w": {"shape": [1]}}')),
        ("model.safetensors", struct.pack("<Q", 2**63) + b"{}"),
        ("model.safetensors", struct.pack("<Q", 500) + b"{}"),
        ("model.safetensors", entry("[Infinity]")),
        ("model.safetensors", entry("[NaN]")),
        ("model.safetensors", entry("[2.5]")),
        ("model.safetensors", entry("[-1]")),
        ("model.safetensors", entry("[true]")),
        ("model.safetensors", entry('["2"]')),
        ("model.safetensors", entry("7")),
        ("model.safetensors", entry(f"[{10**30}]")),
        ("model.safetensors", entry(f"[{'9' * 5000}]")),
        ("model.safetensors", entry(offsets="[0]")),
        ("model.safetensors", entry(offsets="[4, 2]")),
        ("model.safetensors", entry(offsets="[0, Infinity]")),
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

    assert (caught.value.reason, caught.value.terminal) == ("UnreadableModel", True)


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin", "medusa_lm_head.pt"])
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (POINTER, "is a Git LFS pointer, .* run `git lfs pull`"),
        (PAGE, "is a web page, .* download the file again"),
        (b"", "is empty: .* copy or download it again"),
    ],
)
def test_what_stands_in_place_of_weights_is_told_with_its_remedy(
    tmp_path: Path, name: str, content: bytes, said: str
) -> None:
    (tmp_path / name).write_bytes(content)

    with pytest.raises(ProgramFailure, match=f"{name} {said}") as caught:
        read_shapes(tmp_path / name)

    assert caught.value.reason == "UnreadableModel"


@pytest.mark.parametrize("kept", [2, 9, 60, 999])
def test_a_safetensors_file_that_ends_before_its_weights_is_refused(tmp_path: Path, kept: int) -> None:
    write_weights(tmp_path / "model.safetensors", size=1000)
    whole = (tmp_path / "model.safetensors").read_bytes()
    (tmp_path / "model.safetensors").write_bytes(whole[:kept])

    with pytest.raises(ProgramFailure, match=r"cut short|header would take") as caught:
        read_shapes(tmp_path / "model.safetensors")

    assert caught.value.reason == "UnreadableModel"


@pytest.mark.parametrize("number", [errno.EIO, errno.ESTALE])
def test_a_store_that_is_away_for_a_moment_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def away(*_arguments: object, **_options: object) -> None:
        raise OSError(number, "the store is away")

    monkeypatch.setattr("pathlib.Path.open", away)
    write = tmp_path / "model.safetensors"
    os.close(os.open(write, os.O_CREAT))

    with pytest.raises(ProgramFailure) as caught:
        read_shapes(write)

    assert not caught.value.terminal


@given(flips=st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), max_size=8), kept=st.integers(0, 10**6))
@pytest.mark.parametrize("name", ["model.safetensors", "packed.pt", "legacy.pt"])
def test_whatever_is_wrong_with_a_weight_file_is_said_of_that_file(
    tmp_path_factory: pytest.TempPathFactory, name: str, flips: list[tuple[int, int]], kept: int
) -> None:
    path = tmp_path_factory.getbasetemp() / f"fuzzed-{name}"
    writers: dict[str, Callable[[Path, Shapes], None]] = {
        "model.safetensors": write_safetensors,
        "packed.pt": write_checkpoint,
        "legacy.pt": write_legacy_checkpoint,
    }
    writers[name](path, SHAPES)
    content = bytearray(path.read_bytes())
    for place, value in flips:
        content[place % len(content)] = value
    path.write_bytes(content[: kept % (2 * len(content))])

    try:
        read_shapes(path)
    except ProgramFailure as failure:
        assert (failure.reason, failure.terminal, str(path) in failure.message) == ("UnreadableModel", True, True)  # noqa: PT017 - a file that is still whole is no failure

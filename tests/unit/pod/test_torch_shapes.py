"""Checkpoints that want to keep their reader busy, fill its memory or run code."""

from __future__ import annotations

import pickle
import struct
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING

import pytest

from specdec_operator.pod.errors import ProgramFailure
from specdec_operator.pod.torch_shapes import read_torch_shapes
from tests.unit.pod.checkpoints import pickled

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.timeout(60)

SHAPES: dict[str, tuple[int, ...]] = {"fc.weight": (64, 128), "count": ()}
LONG = struct.pack("<I", 2**31 - 1)
EIGHT = struct.pack("<Q", 2**62)


def checkpoint(path: Path, index: bytes, *, method: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("archive/data.pkl", index)
    return path


def refusal(path: Path) -> str:
    with pytest.raises(ProgramFailure) as caught:
        read_torch_shapes(path)
    assert (caught.value.reason, caught.value.terminal) == ("UnreadableModel", True)
    assert str(path) in caught.value.message
    return caught.value.message


def nested_lists(*, wide: int, deep: int) -> bytes:
    """Lists that hold the list before them many times: few bytes, and entries without number."""
    level = b"](" + b"h\x00" * wide + b"eq\x00"
    return b"\x80\x02]q\x00" + level * deep + b"."


BOMBS = {
    "nested references": nested_lists(wide=30, deep=6),
    "references to itself": b"\x80\x02}q\x00(" + b"".join(b"K" + bytes([n]) + b"h\x00" for n in range(120)) + b"u.",
    "a list that is extended by its own entries": b"\x80\x02]q\x00("
    + b"h\x00" * 50_000
    + b"e"
    + b"h\x000" * 900_000
    + b".",
    "more steps than an index has": b"\x80\x02" + b"N0" * 2_000_000 + b"N.",
    "more values than memory has room for": b"\x80\x02" + b"]" * 10_000_000 + b".",
    "a text of two gigabytes": b"\x80\x02X" + LONG + b"a.",
    "bytes of two gigabytes": b"\x80\x03B" + LONG + b"a.",
    "a text with a length of eight bytes": b"\x80\x04\x8d" + EIGHT + b"a.",
    "a byte array with a length of eight bytes": b"\x80\x05\x96" + EIGHT + b"a.",
    "a number of two gigabytes": b"\x80\x02\x8b" + LONG + b"1.",
    "a number of a million digits": b"\x80\x02L" + b"7" * 1_000_000 + b"L\n.",
    "a long number in words": b"\x80\x02I" + b"7" * 1_000_000 + b"\n.",
    "a place in the memo that is far off": b"\x80\x02Nr\xff\xff\xff\xffh\x01.",
    "a name of a megabyte": b"\x80\x02}X" + struct.pack("<I", 2**20) + b"n" * 2**20 + b"Ns.",
    "a call with a hundred thousand arguments": b"\x80\x02cbuiltins\nprint\n(" + b"N" * 100_000 + b"tR.",
    "a shape of a hundred thousand lengths": b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(NN("
    + b"K\x01" * 100_000
    + b"ttR.",
    "a shape of texts": b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(NN(X\x01\0\0\0attR.",
    "a shape below nothing": b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(NN(J\xff\xff\xff\xffttR.",
    "an extension code": b"\x80\x02\x82\x01.",
    "an object by its class, as protocol 0 has it": b"(S'id'\nios\nsystem\n.",
    "nothing on the stack": b"\x80\x02R.",
    "no end": b"\x80\x02}",
    "nothing": b"",
}


@pytest.mark.parametrize("index", BOMBS.values(), ids=BOMBS)
@pytest.mark.parametrize("archived", [True, False], ids=["archive", "legacy"])
def test_an_index_that_is_a_bomb_is_refused_soon(tmp_path: Path, index: bytes, *, archived: bool) -> None:
    path = tmp_path / "medusa_lm_head.pt"
    head = b"".join(pickle.dumps(part, protocol=2) for part in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}))
    checkpoint(path, index) if archived else path.write_bytes(head + index)

    assert "is no PyTorch checkpoint" in refusal(path)


READ_ALL = """
import pathlib, resource, sys
from specdec_operator.pod.errors import ProgramFailure
from specdec_operator.pod.torch_shapes import read_torch_shapes
for path in pathlib.Path(sys.argv[1]).iterdir():
    try:
        read_torch_shapes(path)
    except ProgramFailure:
        pass
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def test_no_bomb_takes_half_the_memory_of_a_job(tmp_path: Path) -> None:
    for number, index in enumerate(BOMBS.values()):
        checkpoint(tmp_path / f"{number}.pt", index)

    read = subprocess.run([sys.executable, "-c", READ_ALL, str(tmp_path)], check=True, capture_output=True, text=True)

    assert int(read.stdout) < 512


@pytest.mark.parametrize("level", [b"2\x86", b"q\x000h\x00h\x00\x86", b"q\x000(h\x00h\x00t", b"q\x000(h\x00h\x00l"])
def test_a_key_that_would_take_for_ever_to_hash_is_left_out(tmp_path: Path, level: bytes) -> None:
    doubled_a_thousand_times = b"\x80\x02})" + level * 1000 + b"Ns."

    assert read_torch_shapes(checkpoint(tmp_path / "model.pt", doubled_a_thousand_times)) == {}


@pytest.mark.parametrize(
    "call",
    [
        b"cos\nsystem\n(X\x0c\0\0\0touch marker\x85R",
        b"cposix\nsystem\n(X\x0c\0\0\0touch markertR",
        b"cbuiltins\neval\n(X\x01\0\0\x001tR",
        b"cos\nsystem\n)\x81",
        b"cos\nsystem\n)}\x92",
        b"cspecdec_operator.pod.torch_shapes\n_shape\n}X\x0c\0\0\0__defaults__K\x01sb",
        b"ctorch._utils\n_rebuild_tensor_v2\n}X\x08\0\0\0__code__K\x01sb",
        b"X\x01\0\0\0a)R",
        b"]q\x00(h\x00tR",
    ],
)
def test_nothing_in_an_index_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: bytes) -> None:
    monkeypatch.chdir(tmp_path)
    good = pickled(SHAPES, protocol=2)
    try:
        read_torch_shapes(checkpoint(tmp_path / "model.pt", b"\x80\x02" + call + b"."))
    except ProgramFailure as failure:
        assert failure.reason == "UnreadableModel"  # noqa: PT017 - either outcome is right: nothing may have run

    assert not (tmp_path / "marker").exists()
    assert read_torch_shapes(checkpoint(tmp_path / "good.pt", good)) == SHAPES


def test_a_packed_index_is_read(tmp_path: Path) -> None:
    path = checkpoint(tmp_path / "model.pt", pickled(SHAPES, protocol=2), method=zipfile.ZIP_DEFLATED)

    assert read_torch_shapes(path) == SHAPES


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_an_index_packed_as_pytorch_never_does_is_refused(tmp_path: Path, method: int) -> None:
    assert "packed with method" in refusal(
        checkpoint(tmp_path / "model.pt", pickled(SHAPES, protocol=2), method=method)
    )


def test_an_index_that_unpacks_to_gigabytes_is_refused(tmp_path: Path) -> None:
    path = checkpoint(tmp_path / "model.pt", b"\x80\x02" + b"N0" * 20_000_000, method=zipfile.ZIP_DEFLATED)

    assert "takes more than" in refusal(path)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (8, 99),  # method of the directory's entry
        (6, 1),  # encrypted
        (6, 0x40),  # encrypted in another way
        (6, 0x20),  # patched data
    ],
)
def test_a_member_that_cannot_be_unpacked_is_refused(tmp_path: Path, place: int, value: int) -> None:
    path = checkpoint(tmp_path / "model.pt", pickled(SHAPES, protocol=2))
    content = bytearray(path.read_bytes())
    directory = content.index(b"PK\x01\x02")
    content[place], content[directory + place + 2] = value, value
    path.write_bytes(content)

    refusal(path)


def test_a_packed_member_that_is_damaged_is_refused(tmp_path: Path) -> None:
    path = checkpoint(tmp_path / "model.pt", pickled(SHAPES, protocol=2), method=zipfile.ZIP_DEFLATED)
    content = bytearray(path.read_bytes())
    start = 30 + len("archive/data.pkl")
    content[start : start + 8] = b"\xff" * 8
    path.write_bytes(content)

    refusal(path)


@pytest.mark.parametrize("kept", [0.1, 0.5, 0.9, 0.99])
def test_an_archive_that_is_cut_short_says_so(tmp_path: Path, kept: float) -> None:
    path = checkpoint(tmp_path / "model.pt", pickled({**SHAPES, **{f"w{n}": (n,) for n in range(50)}}, protocol=2))
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * kept)])

    assert "it is cut short" in refusal(path)


def test_ten_thousand_tensors_are_within_the_bounds(tmp_path: Path) -> None:
    shapes: dict[str, tuple[int, ...]] = {
        f"model.layers.{n}.mlp.experts.gate_proj.weight": (n, 4) for n in range(10_000)
    }

    assert read_torch_shapes(checkpoint(tmp_path / "model.bin", pickled(shapes, protocol=2))) == shapes

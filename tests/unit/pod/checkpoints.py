"""Weight files for the tests, without PyTorch: heads of safetensors files and pickled indexes."""

from __future__ import annotations

import io
import json
import pickle
import struct
import sys
import types
import zipfile
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from unittest import mock

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

Shapes = dict[str, tuple[int, ...]]

_UTILITIES = types.ModuleType("torch._utils")


def _rebuild_tensor_v2(*_arguments: object) -> object:
    raise AssertionError("reading an index must call nothing that it names")


_rebuild_tensor_v2.__module__, _rebuild_tensor_v2.__qualname__ = "torch._utils", "_rebuild_tensor_v2"
_UTILITIES.__dict__["_rebuild_tensor_v2"] = _rebuild_tensor_v2


@dataclass(frozen=True)
class _Storage:
    key: int


@dataclass(frozen=True)
class _Tensor:
    shape: tuple[int, ...]
    storage: _Storage

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild_tensor_v2, (self.storage, 0, self.shape, (1,) * len(self.shape), False, OrderedDict())


class _Pickler(pickle.Pickler):
    def persistent_id(self, value: object) -> object:
        return ("storage", "HalfStorage", str(value.key), "cpu", 1) if isinstance(value, _Storage) else None


def write_safetensors(path: Path, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """A safetensors file with tensors of these shapes that take no room."""
    header = {name: {"dtype": "F16", "shape": shape, "data_offsets": [0, 0]} for name, shape in shapes.items()}
    text = json.dumps({"__metadata__": {"format": "pt"}, **header}).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text)


def write_weights(path: Path, *, size: int = 1000) -> None:
    """A whole safetensors file of that many bytes with one tensor."""
    length = size - 8
    header = {"weight": {"dtype": "U8", "shape": [length // 2], "data_offsets": [0, length // 2]}}
    text = json.dumps(header).encode().ljust(length - length // 2)
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(length // 2))


def write_checkpoint(path: Path, content: object, *, protocol: int = 2) -> None:
    """A PyTorch checkpoint; tuples in `content` become tensors of that shape."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickled(content, protocol=protocol))
        archive.writestr("archive/version", "3\n")


def write_legacy_checkpoint(path: Path, content: object) -> None:
    """A PyTorch checkpoint as it was before 1.6."""
    parts = [pickle.dumps(part, protocol=2) for part in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True})]
    path.write_bytes(b"".join([*parts, pickled(content, protocol=2), pickle.dumps(["0"], protocol=2)]))


def pickled(content: object, *, protocol: int) -> bytes:
    """The pickled index of a checkpoint."""
    buffer = io.BytesIO()
    with mock.patch.dict(sys.modules, {"torch": types.ModuleType("torch"), "torch._utils": _UTILITIES}):
        _Pickler(buffer, protocol=protocol).dump(_with_tensors(content))
    return buffer.getvalue()


def _with_tensors(content: object) -> object:
    if isinstance(content, tuple):
        return _Tensor(content, _Storage(len(content)))
    if isinstance(content, dict):
        return OrderedDict((key, _with_tensors(value)) for key, value in content.items())
    if isinstance(content, list):
        return [_with_tensors(value) for value in content]
    return content

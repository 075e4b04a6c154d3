"""The safetensors file format, read and written with numpy alone."""

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from testbed.runtime.inference.errors import ModelFilesError

Tensor: TypeAlias = NDArray[Any]
FloatType: TypeAlias = Literal["F32", "F16", "BF16"]

WEIGHTS_FILE = "model.safetensors"
INDEX_FILE = "model.safetensors.index.json"

_LENGTH_BYTES = 8
_DTYPES: Mapping[str, str] = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "BF16": "<u2",
    "I64": "<i8",
    "I32": "<i4",
    "U8": "|u1",
    "BOOL": "|b1",
}


def read_directory(directory: Path) -> dict[str, Tensor]:
    """Read all tensors of a model directory, sharded or not.

    Raises:
        ModelFilesError: no weights are there, a shard is missing, or a file is damaged.
    """
    index = directory / INDEX_FILE
    if not index.exists():
        return read_tensors(directory / WEIGHTS_FILE)
    weight_map: dict[str, str] = json.loads(index.read_text())["weight_map"]
    tensors: dict[str, Tensor] = {}
    for shard in sorted(set(weight_map.values())):
        tensors.update(read_tensors(directory / shard))
    missing = sorted(set(weight_map) - set(tensors))
    if missing:
        raise ModelFilesError(f"{index}: its shards lack {missing[0]!r} and {len(missing) - 1} more; fetch again")
    return tensors


def read_tensors(file: Path) -> dict[str, Tensor]:
    """Read one safetensors file; F16, BF16 and F64 come back as float32, other types as they are.

    Raises:
        ModelFilesError: the file is missing, cut off or not a safetensors file.
    """
    try:
        content = file.read_bytes()
    except OSError as error:
        raise ModelFilesError(f"{file}: can't be read ({error.strerror}); is the model complete?") from error
    header, data = _split(file, content)
    return {name: _tensor(file, name, entry, data) for name, entry in header.items() if name != "__metadata__"}


def write_tensors(file: Path, tensors: Mapping[str, Tensor], *, dtype: FloatType = "F32") -> None:
    """Write tensors in name order, floating-point ones as `dtype`, so that equal content gives equal bytes."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    chunks: list[bytes] = []
    offset = 0
    for name in sorted(tensors):
        kind, stored = _stored(tensors[name], dtype)
        chunk = np.ascontiguousarray(stored).tobytes()
        header[name] = {
            "dtype": kind,
            "shape": list(stored.shape),
            "data_offsets": [offset, offset + len(chunk)],
        }
        chunks.append(chunk)
        offset += len(chunk)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    file.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(chunks))


def _split(file: Path, content: bytes) -> tuple[dict[str, Any], memoryview]:
    try:
        (length,) = struct.unpack_from("<Q", content)
        header = json.loads(content[_LENGTH_BYTES : _LENGTH_BYTES + length])
    except (struct.error, ValueError) as error:
        raise ModelFilesError(f"{file}: is not a safetensors file; fetch it again") from error
    if not isinstance(header, dict):
        raise ModelFilesError(f"{file}: is not a safetensors file; fetch it again")
    return header, memoryview(content)[_LENGTH_BYTES + length :]


def _tensor(file: Path, name: str, entry: Mapping[str, Any], data: memoryview) -> Tensor:
    kind: str = entry["dtype"]
    if kind not in _DTYPES:
        known = ", ".join(_DTYPES)
        raise ModelFilesError(f"{file}: tensor {name!r} has dtype {kind}, which is not one of {known}")
    begin, end = entry["data_offsets"]
    if end > len(data):
        raise ModelFilesError(f"{file}: is cut off inside tensor {name!r}; fetch it again")
    flat: Tensor = np.frombuffer(data[begin:end], dtype=_DTYPES[kind])
    if kind == "BF16":
        flat = (flat.astype(np.uint32) << 16).view(np.float32)
    elif kind in ("F16", "F64"):
        flat = flat.astype(np.float32)
    return flat.reshape(entry["shape"])


def _stored(tensor: Tensor, dtype: FloatType) -> tuple[str, Tensor]:
    if tensor.dtype == np.bool_:
        return "BOOL", tensor
    if np.issubdtype(tensor.dtype, np.integer):
        return "I64", tensor.astype("<i8")
    if dtype == "BF16":
        bits = tensor.astype("<f4").view(np.uint32)
        # Round to nearest, ties to even, as the hardware does.
        return "BF16", ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2")
    return dtype, tensor.astype("<f2" if dtype == "F16" else "<f4")

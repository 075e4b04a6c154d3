"""Names and shapes of a model's tensors, from the heads of its weight files; no weight is read."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn

from specdec_operator.pod.reading import reading, unreadable
from specdec_operator.pod.torch_shapes import read_torch_shapes

Shapes = dict[str, tuple[int, ...]]
_LENGTH_BYTES = 8
_LONGEST_HEADER_BYTES = 16 * 1024 * 1024
"""Some 100,000 tensors in one file; the library itself reads up to 100 MB."""
_LARGEST = 2**63


def read_shapes(path: Path) -> Shapes:
    """Names and shapes of the tensors of one weight file (*.safetensors, *.bin, *.pt, *.pth).

    Raises:
        ProgramFailure: UnreadableModel, also of a file that ends before its last tensor does.
    """
    return _read_safetensors(path) if path.suffix == ".safetensors" else read_torch_shapes(path)


def read_weights(directory: Path, names: Iterable[str]) -> Shapes:
    """The tensors of a model's weight files: one that can't be read is found before anything waits for a GPU.

    Args:
        names: The files, at least one, relative to the directory.

    Raises:
        ProgramFailure: UnreadableModel, also if no file holds a tensor.
    """
    paths = [directory / name for name in names]
    shapes: Shapes = {}
    for path in paths:
        shapes.update(read_shapes(path))
    if not shapes:
        raise unreadable(paths[0], "weight file", "no tensor is in the model's weight files")
    return shapes


def _read_safetensors(path: Path) -> Shapes:
    with reading(path, "safetensors file"):
        entries, weights = _header(path)
        shapes = {name: _shape(name, entry) for name, entry in entries.items()}
        needed = max((_end(name, entry) for name, entry in entries.items()), default=0)
        if needed > weights:
            raise ValueError(f"it is cut short: its header tells of {needed} bytes of weights, and {weights} are there")
        return shapes


def _header(path: Path) -> tuple[dict[str, Any], int]:
    """The entries of the tensors, and the bytes that come after them."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
        weights = size - _LENGTH_BYTES - length
        if weights < 0:
            raise ValueError(f"its header would take {length} bytes, and the file has {size}")
        if length > _LONGEST_HEADER_BYTES:
            raise ValueError(f"its header takes {length} bytes")
        text = file.read(length).decode("utf-8")
    # as the library reads it: each name once, and no numbers that JSON does not have
    entries = json.loads(text, object_pairs_hook=_named_once, parse_constant=_no_number)
    if not isinstance(entries, dict):
        raise ValueError("its header is not a JSON object")  # noqa: TRY004 - the content is wrong, not a caller
    return {name: entry for name, entry in entries.items() if name != "__metadata__"}, weights


def _named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("its header says something twice")
    return found


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"its header says {text}, which is not JSON")


def _shape(name: str, entry: Any) -> tuple[int, ...]:
    return tuple(_size(name, length) for length in _list(name, entry, "shape"))


def _end(name: str, entry: Any) -> int:
    first, last = (_size(name, offset) for offset in _list(name, entry, "data_offsets"))
    if first > last:
        raise ValueError(f"the tensor {name[:80]!a} ends before it begins")
    return last


def _list(name: str, entry: Any, key: str) -> list[Any]:
    found = entry.get(key) if isinstance(entry, dict) else None
    if not isinstance(found, list):
        raise ValueError(f"the tensor {name[:80]!a} has no {key}")  # noqa: TRY004 - as above
    return found


def _size(name: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _LARGEST:
        raise ValueError(f"the tensor {name[:80]!a} has a size that can't be")
    return value

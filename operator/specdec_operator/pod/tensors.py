"""Names and shapes of a model's tensors, from the heads of its weight files; no weight is read."""

import json
import struct
from pathlib import Path
from typing import Any

from specdec_operator.pod.errors import ProgramFailure
from specdec_operator.pod.torch_shapes import read_torch_shapes

Shapes = dict[str, tuple[int, ...]]
_LONGEST_HEADER_BYTES = 100 * 1024 * 1024


def read_shapes(path: Path) -> Shapes:
    """Names and shapes of the tensors of one weight file (*.safetensors, *.bin, *.pt, *.pth).

    Raises:
        ProgramFailure: UnreadableModel.
    """
    return _read_safetensors(path) if path.suffix == ".safetensors" else read_torch_shapes(path)


def _read_safetensors(path: Path) -> Shapes:
    try:
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            # a longer one is cut here, and then is no JSON
            header = json.loads(file.read(min(length, _LONGEST_HEADER_BYTES)))
        return {name: _shape(entry) for name, entry in header.items() if name != "__metadata__"}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, struct.error) as error:
        raise ProgramFailure(
            "UnreadableModel", f"{path} is no safetensors file ({error}); fetch the model again"
        ) from error


def _shape(entry: Any) -> tuple[int, ...]:
    return tuple(int(length) for length in entry["shape"])

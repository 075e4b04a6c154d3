"""The files of a model directory: which hold weights, how many bytes, and a digest of what it is."""

import hashlib
import json
import os
from pathlib import Path

from specdec_operator.pod.errors import ProgramFailure
from specdec_operator.pod.reading import read_json, reading

MANIFEST_NAME = "specdec-manifest.json"
_HASHED_JSON_BYTES = 64 * 1024 * 1024
_TRAINING_STATE = frozenset(
    {"training_args.bin", "optimizer.bin", "optimizer.pt", "scheduler.bin", "scheduler.pt", "scaler.pt"}
    | {"rng_state.pth"}
)
_FOREIGN_DIRECTORIES = frozenset({"lost+found", "__pycache__"})


def list_files(directory: Path) -> dict[str, int]:
    """Relative paths and sizes of a directory's files, without hidden files and our own manifest; sorted."""
    sizes: dict[str, int] = {}
    for parent, folders, names in os.walk(directory):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in _FOREIGN_DIRECTORIES]
        for name in names:
            path = Path(parent) / name
            if not name.startswith(".") and name != MANIFEST_NAME and path.is_file():
                sizes[path.relative_to(directory).as_posix()] = path.stat().st_size
    return dict(sorted(sizes.items()))


def content_digest(directory: Path) -> str:
    """Hash of file names, sizes and the content of the JSON files, the weight index among them."""
    entries = [
        [path, size, _file_digest(directory / path) if _is_small_json(path, size) else ""]
        for path, size in list_files(directory).items()
    ]
    return hashlib.sha256(json.dumps(entries, separators=(",", ":"), ensure_ascii=True).encode("ascii")).hexdigest()


def weight_files(directory: Path) -> dict[str, int]:
    """Relative paths and sizes of the weight files that a runtime loads.

    Raises:
        ProgramFailure: WeightsMissing, there are none or the index names one that isn't there.
    """
    sizes = list_files(directory)
    for index in ("model.safetensors.index.json", "pytorch_model.bin.index.json"):
        if index in sizes:
            return {name: sizes[name] for name in sorted(_indexed(directory / index, sizes))}
    for suffixes in ((".safetensors",), (".bin", ".pt", ".pth")):
        weights = [name for name in sizes if name.endswith(suffixes) and Path(name).name not in _TRAINING_STATE]
        # runtimes look into no folders, where others keep the same weights for another framework
        beside = [name for name in weights if "/" not in name] or weights
        # Mistral ships the same weights twice
        usual = [name for name in beside if not name.startswith("consolidated")] or beside
        if usual:
            return {name: sizes[name] for name in usual}
    raise ProgramFailure(
        "WeightsMissing",
        f"{directory} holds no weights (*.safetensors, *.bin or *.pt); give the directory of a whole model",
    )


def weight_bytes(directory: Path) -> int:
    """Bytes of the weight files that a runtime loads.

    Raises:
        ProgramFailure: as `weight_files`.
    """
    return sum(weight_files(directory).values())


def _indexed(index: Path, sizes: dict[str, int]) -> set[str]:
    document = read_json(index, "weight index")
    with reading(index, "weight index"):
        named = {_text(name) for name in document["weight_map"].values()}
        if not named:
            raise ValueError("it names no file")
    missing = sorted(named - set(sizes))
    if missing:
        raise ProgramFailure(
            "WeightsMissing",
            f"{index.name} names {', '.join(missing[:4])}, which {index.parent} doesn't hold; complete the download",
        )
    return named


def _text(name: object) -> str:
    if not isinstance(name, str):
        raise TypeError("a file's name must be a string")
    return name


def _is_small_json(path: str, size: int) -> bool:
    return path.endswith(".json") and size <= _HASHED_JSON_BYTES


def _file_digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()

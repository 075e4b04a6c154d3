"""The manifest of a published directory: written last, so that a directory with a valid one is whole."""

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from specdec_operator.pod.errors import ProgramFailure
from specdec_operator.pod.model_files import MANIFEST_NAME, list_files

_CHUNK_BYTES = 8 * 1024 * 1024


@dataclasses.dataclass(frozen=True)
class ManifestFile:
    """One published file. An empty sha256: only its size is known."""

    path: str
    size: int
    sha256: str


@dataclasses.dataclass(frozen=True)
class Manifest:
    """What a directory was published as.

    Attributes:
        kind: Model or Engine.
        files: every file, sorted by path.
        origin: what it was made from.
    """

    kind: str
    files: tuple[ManifestFile, ...]
    origin: Mapping[str, Any]

    def digest(self) -> str:
        """Hash of paths, sizes and contents."""
        entries = [[file.path, file.size, file.sha256] for file in self.files]
        return hashlib.sha256(json.dumps(entries, separators=(",", ":")).encode("ascii")).hexdigest()

    def total_bytes(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)

    def to_json(self) -> str:
        """The manifest file's text."""
        return json.dumps({"version": 1, **dataclasses.asdict(self)}, indent=1, sort_keys=True)


def describe(directory: Path, *, kind: str, origin: Mapping[str, Any], hashed: bool) -> Manifest:
    """The manifest of a directory as it is; `hashed` reads every byte."""
    files = tuple(
        ManifestFile(path, size, file_sha256(directory / path) if hashed else "")
        for path, size in list_files(directory).items()
    )
    return Manifest(kind, files, origin)


def read_manifest(directory: Path, *, kind: str) -> Manifest | None:
    """The manifest of a published directory; None if it has none that can be read."""
    try:
        value = json.loads((directory / MANIFEST_NAME).read_text(encoding="utf-8"))
        files = tuple(ManifestFile(str(f["path"]), int(f["size"]), str(f["sha256"])) for f in value["files"])
        manifest = Manifest(value["kind"], files, value["origin"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return manifest if manifest.kind == kind and value.get("version") == 1 else None


def damages(directory: Path, manifest: Manifest) -> Iterator[str]:
    """What differs from the manifest: files that are missing or have another size. No file is read."""
    for file in manifest.files:
        path = directory / file.path
        if not path.is_file():
            yield f"{file.path} is missing"
        elif path.stat().st_size != file.size:
            yield f"{file.path} has {path.stat().st_size} bytes, published with {file.size}"


def require_whole(directory: Path, *, kind: str) -> Manifest:
    """The manifest of a directory that is as it was published.

    Raises:
        ProgramFailure: EngineMissing or ModelMissing without a manifest; EngineDamaged or ModelDamaged otherwise.
    """
    manifest = read_manifest(directory, kind=kind)
    if manifest is None:
        raise ProgramFailure(
            f"{kind}Missing",
            f"{directory} holds no {kind.lower()} with a valid {MANIFEST_NAME}; it is made again from its source",
        )
    found = list(damages(directory, manifest))
    if found:
        raise ProgramFailure(f"{kind}Damaged", f"{directory}: {'; '.join(found[:4])}; it is made again from its source")
    return manifest


def file_sha256(path: Path) -> str:
    """The sha256 of a file, read in pieces."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_CHUNK_BYTES):
            digest.update(piece)
    return digest.hexdigest()

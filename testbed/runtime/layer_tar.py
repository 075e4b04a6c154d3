"""Tar layers whose bytes depend on nothing but their content."""

from __future__ import annotations

import hashlib
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class LayerFile:
    """One file of a layer.

    Attributes:
        path: where it goes in the image, without a leading slash.
        source: the file or symbolic link on this machine.
        executable: whether everybody may run it.
    """

    path: str
    source: Path
    executable: bool = False


def write_layer(destination: Path, files: Iterable[LayerFile]) -> None:
    """Write an uncompressed layer with sorted entries, fixed times and root as the owner."""
    by_path = {file.path: file for file in files}
    folders = {str(parent) for path in by_path for parent in Path(path).parents if str(parent) != "."}
    with tarfile.open(destination, "w", format=tarfile.PAX_FORMAT) as archive:
        for folder in sorted(folders):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(entry)
        for path in sorted(by_path):
            _add(archive, by_path[path])


def _add(archive: tarfile.TarFile, file: LayerFile) -> None:
    entry = tarfile.TarInfo(file.path)
    if file.source.is_symlink():
        entry.type, entry.linkname, entry.mode = tarfile.SYMTYPE, str(file.source.readlink()), 0o777
        archive.addfile(entry)
        return
    entry.size = file.source.stat().st_size
    entry.mode = 0o755 if file.executable else 0o644
    with file.source.open("rb") as content:
        archive.addfile(entry, content)


def files_under(root: Path, prefix: str = "") -> tuple[LayerFile, ...]:
    """Every file below `root`, placed below `prefix`; execute bits are kept, caches left out."""
    found = sorted(path for path in root.rglob("*") if path.is_symlink() or path.is_file())
    return tuple(
        LayerFile(
            path=f"{prefix}{path.relative_to(root)}",
            source=path,
            executable=not path.is_symlink() and bool(path.stat().st_mode & 0o100),
        )
        for path in found
        if "__pycache__" not in path.parts
    )


def content_key(files: Iterable[LayerFile]) -> str:
    """The hash of paths, modes and bytes of a layer's files, as 64 hexadecimal digits."""
    digest = hashlib.sha256()
    for file in sorted(files, key=lambda file: file.path):
        content = str(file.source.readlink()).encode() if file.source.is_symlink() else file.source.read_bytes()
        digest.update(f"{file.path}\0{file.executable}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def file_digest(path: Path) -> str:
    """The SHA-256 of a file, as 64 hexadecimal digits."""
    digest = hashlib.sha256()
    with path.open("rb") as content:
        while chunk := content.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()

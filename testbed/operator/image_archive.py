"""An OCI layout of one image, packed as an archive that every importer finds the image's name in."""

from __future__ import annotations

import json
import tarfile
from io import BytesIO
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


def write_archive(layout: Path, archive: Path, *, reference: str) -> None:
    """Pack an image of an OCI layout under its name; blobs and images of others are removed from the layout."""
    index = json.loads((layout / "index.json").read_text(encoding="utf-8"))
    manifest = next(item for item in index["manifests"] if _names(item, reference))
    # containerd takes the name from the first annotation, buildah and skopeo from the second.
    manifest["annotations"] = {
        "io.containerd.image.name": reference,
        "org.opencontainers.image.ref.name": reference,
    }
    own = json.dumps({"schemaVersion": 2, "manifests": [manifest]}).encode()
    (layout / "index.json").write_bytes(own)
    blobs = layout / "blobs" / "sha256"
    wanted = _blobs_of(blobs, manifest["digest"])
    with tarfile.open(archive, "w") as tar:
        _add(tar, "oci-layout", (layout / "oci-layout").read_bytes())
        _add(tar, "index.json", own)
        for blob in sorted(blobs.iterdir()):
            if blob.name not in wanted:
                blob.unlink()
                continue
            with blob.open("rb") as content:
                entry = tarfile.TarInfo(f"blobs/sha256/{blob.name}")
                entry.size = blob.stat().st_size
                tar.addfile(entry, content)


def image_digest(archive: Path) -> str:
    """Return the digest of an archive's one image."""
    with tarfile.open(archive) as tar:
        return str(_document(tar, "index.json")["manifests"][0]["digest"])


def _names(descriptor: dict[str, Any], reference: str) -> bool:
    return bool(descriptor.get("annotations", {}).get("org.opencontainers.image.ref.name") == reference)


def _blobs_of(blobs: Path, digest: str) -> set[str]:
    name = digest.removeprefix("sha256:")
    manifest = json.loads((blobs / name).read_bytes())
    parts = (manifest["config"], *manifest["layers"])
    return {name, *(str(part["digest"]).removeprefix("sha256:") for part in parts)}


def _document(tar: tarfile.TarFile, name: str) -> dict[str, Any]:
    member = tar.extractfile(name)
    if member is None:
        raise KeyError(name)
    document: dict[str, Any] = json.load(member)
    return document


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    tar.addfile(entry, BytesIO(content))

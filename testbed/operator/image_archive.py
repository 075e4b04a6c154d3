"""An image that lies in a folder, packed as an OCI archive that every importer finds the image's name in."""

from __future__ import annotations

import json
import tarfile
from hashlib import sha256
from io import BytesIO
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

_MANIFEST = "application/vnd.oci.image.manifest.v1+json"


def write_archive(image: Path, archive: Path, *, reference: str) -> None:
    """Pack an image as the archive under a name.

    Args:
        image: folder with `manifest.json` and each blob under the hexadecimal digits of its digest.
        archive: the file to write.
        reference: full name with its tag.
    """
    manifest = (image / "manifest.json").read_bytes()
    document = json.loads(manifest)
    with tarfile.open(archive, "w") as tar:
        _add(tar, "oci-layout", json.dumps({"imageLayoutVersion": "1.0.0"}).encode())
        _add(tar, "index.json", json.dumps(_index(manifest, reference)).encode())
        _add(tar, f"blobs/sha256/{sha256(manifest).hexdigest()}", manifest)
        for digest in sorted({part["digest"] for part in (document["config"], *document["layers"])}):
            name = digest.removeprefix("sha256:")
            with (image / name).open("rb") as content:
                entry = tarfile.TarInfo(f"blobs/sha256/{name}")
                entry.size = (image / name).stat().st_size
                tar.addfile(entry, content)


def image_digest(archive: Path) -> str:
    """Return the digest of an archive's one image."""
    with tarfile.open(archive) as tar:
        member = tar.extractfile("index.json")
        if member is None:
            raise ValueError(f"{archive}: index.json is no file; remove the archive and build it again")
        return str(json.load(member)["manifests"][0]["digest"])


def _index(manifest: bytes, reference: str) -> dict[str, Any]:
    descriptor = {
        "mediaType": _MANIFEST,
        "digest": f"sha256:{sha256(manifest).hexdigest()}",
        "size": len(manifest),
        # containerd takes the name from the first annotation, buildah and skopeo from the second.
        "annotations": {
            "io.containerd.image.name": reference,
            "org.opencontainers.image.ref.name": reference,
        },
    }
    return {"schemaVersion": 2, "manifests": [descriptor]}


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    tar.addfile(entry, BytesIO(content))

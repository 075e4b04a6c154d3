"""A busybox image, made from the machine's own static busybox: pods' sandboxes run it, and tests may."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

BUSYBOX_IMAGE = "testbed.specdec.dev/busybox:1"
APPLETS: Sequence[str] = (
    *("cat", "chmod", "cp", "date", "echo", "env", "false", "find", "grep", "head", "hostname", "httpd", "id"),
    *("ls", "mkdir", "mv", "nc", "nslookup", "ping", "ps", "rm", "sed", "sh", "sleep", "stat", "sync", "tail"),
    *("test", "touch", "tr", "true", "wc", "wget"),
)
MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar+gzip"


@dataclass(frozen=True)
class Blob:
    """A blob of an OCI layout.

    Attributes:
        media_type: what it is.
        content: its bytes.
    """

    media_type: str
    content: bytes

    @property
    def digest(self) -> str:
        """SHA-256 of the content in hexadecimal digits."""
        return hashlib.sha256(self.content).hexdigest()

    def descriptor(self) -> dict[str, object]:
        """Return what refers to it in other blobs."""
        return {
            "mediaType": self.media_type,
            "digest": f"sha256:{self.digest}",
            "size": len(self.content),
        }


def write_busybox_image(archive: Path, *, busybox: Path) -> None:
    """Write the image, named `BUSYBOX_IMAGE`, as an OCI archive; without a command it sleeps for ever."""
    layer_tar = _layer(busybox.read_bytes())
    layer = Blob(LAYER_TYPE, gzip.compress(layer_tar, compresslevel=1, mtime=0))
    config = Blob(
        CONFIG_TYPE,
        _json(
            {
                "architecture": "amd64",
                "os": "linux",
                "config": {"Cmd": ["/bin/sleep", "2147483647"], "Env": ["PATH=/bin"]},
                "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer_tar).hexdigest()}"]},
            }
        ),
    )
    manifest = Blob(
        MANIFEST_TYPE,
        _json(
            {
                "schemaVersion": 2,
                "mediaType": MANIFEST_TYPE,
                "config": config.descriptor(),
                "layers": [layer.descriptor()],
            }
        ),
    )
    _write_layout(archive, manifest=manifest, blobs=(manifest, config, layer))


def _layer(busybox: bytes) -> bytes:
    output = io.BytesIO()
    with tarfile.open(fileobj=output, mode="w") as layer:
        for folder, mode in (("bin", 0o755), ("tmp", 0o1777), ("etc", 0o755)):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, mode
            layer.addfile(entry)
        _add_file(layer, "bin/busybox", busybox, mode=0o755)
        for applet in APPLETS:
            link = tarfile.TarInfo(f"bin/{applet}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            layer.addfile(link)
    return output.getvalue()


def _write_layout(archive: Path, *, manifest: Blob, blobs: Sequence[Blob]) -> None:
    named = {
        "org.opencontainers.image.ref.name": BUSYBOX_IMAGE,
        "io.containerd.image.name": BUSYBOX_IMAGE,
    }
    index = _json({"schemaVersion": 2, "manifests": [manifest.descriptor() | {"annotations": named}]})
    with tarfile.open(archive, mode="w") as layout:
        _add_file(layout, "oci-layout", _json({"imageLayoutVersion": "1.0.0"}))
        _add_file(layout, "index.json", index)
        for blob in blobs:
            _add_file(layout, f"blobs/sha256/{blob.digest}", blob.content)


def _add_file(archive: tarfile.TarFile, name: str, content: bytes, *, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    archive.addfile(entry, io.BytesIO(content))


def _json(content: object) -> bytes:
    return json.dumps(content).encode()

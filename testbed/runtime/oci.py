"""An OCI image archive, written without a container tool."""

from __future__ import annotations

import io
import json
import tarfile
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from testbed.runtime.layer_tar import file_digest

if TYPE_CHECKING:
    from pathlib import Path

_LAYER = "application/vnd.oci.image.layer.v1.tar"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"


@dataclass(frozen=True)
class ImageConfig:
    """What an image says of itself.

    Attributes:
        reference: full name with its tag.
        entrypoint: argv of the entrypoint.
        command: default arguments of the entrypoint.
        environment: variables, in order.
        working_directory: absolute path.
        labels: image labels.
    """

    reference: str
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    working_directory: str = "/"
    labels: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class _Blob:
    digest: str
    size: int
    source: Path | bytes


def write_image(destination: Path, config: ImageConfig, layers: tuple[Path, ...]) -> str:
    """Write an OCI layout archive of uncompressed layers; returns the manifest's digest (`sha256:…`)."""
    layer_blobs = [_Blob(file_digest(layer), layer.stat().st_size, layer) for layer in layers]
    config_blob = _json_blob(_config_document(config, layer_blobs))
    manifest = _json_blob(
        {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": _descriptor(_CONFIG, config_blob),
            "layers": [_descriptor(_LAYER, blob) for blob in layer_blobs],
        }
    )
    index = {"schemaVersion": 2, "manifests": [_named(_descriptor(_MANIFEST, manifest), config.reference)]}
    with tarfile.open(destination, "w", format=tarfile.PAX_FORMAT) as archive:
        _add_bytes(archive, "oci-layout", json.dumps({"imageLayoutVersion": "1.0.0"}).encode())
        _add_bytes(archive, "index.json", json.dumps(index).encode())
        for blob in {blob.digest: blob for blob in (*layer_blobs, config_blob, manifest)}.values():
            _add_blob(archive, blob)
    return f"sha256:{manifest.digest}"


def _config_document(config: ImageConfig, layers: list[_Blob]) -> dict[str, Any]:
    return {
        "architecture": "amd64",
        "os": "linux",
        "config": {
            "Entrypoint": list(config.entrypoint),
            "Cmd": list(config.command),
            "Env": [f"{name}={value}" for name, value in config.environment],
            "WorkingDir": config.working_directory,
            "Labels": dict(config.labels),
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer.digest}" for layer in layers]},
    }


def _json_blob(document: dict[str, Any]) -> _Blob:
    content = json.dumps(document, separators=(",", ":")).encode()
    return _Blob(sha256(content).hexdigest(), len(content), content)


def _descriptor(media_type: str, blob: _Blob) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": f"sha256:{blob.digest}", "size": blob.size}


def _named(descriptor: dict[str, Any], reference: str) -> dict[str, Any]:
    # containerd takes the name from the first annotation, buildah and skopeo from the second.
    annotations = {
        "io.containerd.image.name": reference,
        "org.opencontainers.image.ref.name": reference,
    }
    return {**descriptor, "annotations": annotations}


def _add_blob(archive: tarfile.TarFile, blob: _Blob) -> None:
    name = f"blobs/sha256/{blob.digest}"
    if isinstance(blob.source, bytes):
        _add_bytes(archive, name, blob.source)
        return
    entry = tarfile.TarInfo(name)
    entry.size = blob.size
    with blob.source.open("rb") as content:
        archive.addfile(entry, content)


def _add_bytes(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))

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
    from collections.abc import Sequence
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
    return write_images(destination, [(config, layers)])[0]


def write_images(destination: Path, images: Sequence[tuple[ImageConfig, tuple[Path, ...]]]) -> tuple[str, ...]:
    """Write one OCI layout archive of several images, with what they share in it once.

    Returns:
        The manifests' digests (`sha256:…`), in the order of the images.
    """
    known: dict[Path, _Blob] = {}
    for layer in (layer for _, layers in images for layer in layers):
        if layer not in known:
            known[layer] = _Blob(file_digest(layer), layer.stat().st_size, layer)
    parts = [_image(config, [known[layer] for layer in layers]) for config, layers in images]
    index = {
        "schemaVersion": 2,
        "manifests": [
            _named(_descriptor(_MANIFEST, manifest), config.reference)
            for (config, _), (_, manifest) in zip(images, parts, strict=True)
        ],
    }
    blobs = [*known.values(), *(blob for part in parts for blob in part)]
    with tarfile.open(destination, "w", format=tarfile.PAX_FORMAT) as archive:
        _add_bytes(archive, "oci-layout", json.dumps({"imageLayoutVersion": "1.0.0"}).encode())
        _add_bytes(archive, "index.json", json.dumps(index).encode())
        for blob in {blob.digest: blob for blob in blobs}.values():
            _add_blob(archive, blob)
    return tuple(f"sha256:{manifest.digest}" for _, manifest in parts)


def _image(config: ImageConfig, layers: list[_Blob]) -> tuple[_Blob, _Blob]:
    """Return an image's configuration and its manifest."""
    config_blob = _json_blob(_config_document(config, layers))
    manifest = _json_blob(
        {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": _descriptor(_CONFIG, config_blob),
            "layers": [_descriptor(_LAYER, blob) for blob in layers],
        }
    )
    return config_blob, manifest


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
        # Optional by the specification, but buildah builds on no image without it.
        "history": [{"created_by": config.reference} for _ in layers],
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

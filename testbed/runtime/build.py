"""Builds the simulator images: the real tritonserver, laid out as NVIDIA's, with stand-in backends."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from testbed.cluster.cache import exclusive
from testbed.runtime import base_layers
from testbed.runtime.image_config import PLAYED, Flavour, PlayedRelease, played
from testbed.runtime.layer_tar import LayerFile, content_key, files_under, write_layer
from testbed.runtime.oci import write_images
from testbed.runtime.simulator.release import IMAGE_REFERENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_RUNTIME = Path(__file__).parent
_SIMULATOR_ROOT = "opt/specdec-simulator/"
_SHARED_FILES = (
    "opt/nvidia/",
    "opt/tritonserver/python/",
    "usr/local/bin/nvidia-smi",
    "usr/local/lib/python3.11/dist-packages/specdec-simulator.pth",
)


@dataclass(frozen=True)
class BuiltImage:
    """Images that lie ready to be imported, all in one archive.

    Attributes:
        reference: name with its tag of the image that plays the default release with TensorRT-LLM.
        archive: the OCI archive, to be read by `ctr images import`; it holds every image of `digests`.
        digest: that image's manifest's digest, `sha256:…`.
        digests: manifests' digests of all images by name.
    """

    reference: str
    archive: Path
    digest: str
    digests: Mapping[str, str]


def build_image(*, cache: Path, progress: Callable[[str], None]) -> BuiltImage:
    """Build the simulator images, or return those in the cache when their inputs are unchanged.

    Args:
        cache: the testbed's cache folder; layers and archives go below its `images`.
        progress: gets one line for each thing that happens.

    Raises:
        ImageBuildError: a layer can't be made; the message names the step and the remedy.
    """
    images = cache / "images"
    layers = images / "layers"
    layers.mkdir(parents=True, exist_ok=True)
    with exclusive(images / "build.lock"):
        below = (base_layers.debian_layer(layers, progress), base_layers.triton_layer(layers, progress))
        own = {release.reference: _own_files(release) for release in PLAYED}
        parts = [f"{release.config!r}{_keys(own[release.reference])}" for release in PLAYED]
        key = sha256("\0".join([*(layer.name for layer in below), *parts]).encode())
        archive = images / f"tritonserver-{key.hexdigest()[:16]}.tar"
        record = archive.with_suffix(".json")
        if not (archive.exists() and record.exists()):
            progress(f"image: writing {archive.name}")
            _write(archive, record, below, own)
        digests = json.loads(record.read_text())
        progress(f"image: {', '.join(digests)}: ready")
        return BuiltImage(IMAGE_REFERENCE, archive, str(digests[IMAGE_REFERENCE]), digests)


def image_layers(*, cache: Path, progress: Callable[[str], None], reference: str = IMAGE_REFERENCE) -> tuple[Path, ...]:
    """Build an image's layers alone, bottom first: what a test unpacks to have its root file system."""
    layers = cache / "images" / "layers"
    layers.mkdir(parents=True, exist_ok=True)
    with exclusive(cache / "images" / "build.lock"):
        below = (base_layers.debian_layer(layers, progress), base_layers.triton_layer(layers, progress))
        return (*below, *_own_layers(layers, _own_files(played(reference))))


def image_environment(reference: str = IMAGE_REFERENCE) -> dict[str, str]:
    """Return the variables that a container of an image starts with."""
    return dict(played(reference).config.environment)


_OwnFiles: TypeAlias = "Mapping[str, tuple[LayerFile, ...]]"


def _write(archive: Path, record: Path, below: tuple[Path, ...], own: Mapping[str, _OwnFiles]) -> None:
    for stale in archive.parent.glob("tritonserver-*"):
        stale.unlink()
    partial = archive.with_suffix(".partial")
    images = [(release.config, (*below, *_own_layers(below[0].parent, own[release.reference]))) for release in PLAYED]
    digests = write_images(partial, images)
    partial.rename(archive)
    record.write_text(json.dumps({release.reference: digest for release, digest in zip(PLAYED, digests, strict=True)}))


def _own_layers(layers: Path, own: _OwnFiles) -> tuple[Path, ...]:
    return tuple(_own_layer(layers, name, files) for name, files in own.items() if files)


def _own_layer(layers: Path, name: str, files: tuple[LayerFile, ...]) -> Path:
    layer = layers / f"simulator-{name}-{content_key(files)[:16]}.tar"
    if not layer.exists():
        for stale in layers.glob(f"simulator-{name}-{'?' * 16}.tar"):
            stale.unlink()
        partial = layer.with_suffix(".partial")
        write_layer(partial, files)
        partial.rename(layer)
    return layer


def _keys(own: _OwnFiles) -> str:
    return " ".join(content_key(files) for files in own.values())


def _own_files(release: PlayedRelease) -> _OwnFiles:
    """Return the files of an image's own layers by name, bottom first: its flavour's, and those of its release."""
    image = _RUNTIME / "image"
    flavour = files_under(image / "root")
    if release.flavour is Flavour.VLLM:
        shared = [file for file in flavour if file.path.startswith(_SHARED_FILES)]
        flavour = (*shared, *files_under(image / "vllm"))
    return {
        str(release.flavour): (*flavour, *_packages()),
        release.overlay: files_under(image / "releases" / release.overlay),
    }


def _packages() -> tuple[LayerFile, ...]:
    packages = [
        LayerFile(f"{_SIMULATOR_ROOT}testbed/__init__.py", _RUNTIME.parent / "__init__.py"),
        LayerFile(f"{_SIMULATOR_ROOT}testbed/runtime/__init__.py", _RUNTIME / "__init__.py"),
    ]
    for package in ("inference", "simulator"):
        packages.extend(files_under(_RUNTIME / package, f"{_SIMULATOR_ROOT}testbed/runtime/{package}/"))
    return tuple(packages)


def copy_archive(image: BuiltImage, output: Path) -> None:
    """Copy the archive to where the user wants it."""
    output.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(image.archive, output)

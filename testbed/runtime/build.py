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
from testbed.runtime.bytecode import SIMULATOR, SITE_PACKAGES, layer_key, with_bytecode
from testbed.runtime.image_config import PLAYED, Flavour, PlayedRelease, played
from testbed.runtime.layer_tar import LayerFile, files_under, write_layer
from testbed.runtime.oci import write_images
from testbed.runtime.simulator.contracts import FOLDER as CONTRACTS
from testbed.runtime.simulator.release import IMAGE_REFERENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from testbed.runtime.oci import ImageConfig

_RUNTIME = Path(__file__).parent
_SHARED_FILES = (
    "opt/nvidia/",
    "opt/tritonserver/python/",
    "usr/local/bin/nvidia-smi",
    f"{SITE_PACKAGES}specdec-simulator.pth",
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
        below = _below(layers, progress)
        own = {release.reference: _own_files(release) for release in PLAYED}
        parts = [f"{release.config!r}{_keys(own[release.reference])}" for release in PLAYED]
        key = sha256("\0".join([*(layer.name for layer in below), *parts]).encode())
        archive = images / f"tritonserver-{key.hexdigest()[:16]}.tar"
        record = archive.with_suffix(".json")
        if not (archive.exists() and record.exists()):
            progress(f"image: writing {archive.name}")
            _write(archive, record, [(each.config, _layers(below, own[each.reference], progress)) for each in PLAYED])
        digests = json.loads(record.read_text())
        progress(f"image: the simulator's {len(digests)} images are ready")
        return BuiltImage(IMAGE_REFERENCE, archive, str(digests[IMAGE_REFERENCE]), digests)


def image_layers(*, cache: Path, progress: Callable[[str], None], reference: str = IMAGE_REFERENCE) -> tuple[Path, ...]:
    """Build an image's layers alone, bottom first: what a test unpacks to have its root file system."""
    layers = cache / "images" / "layers"
    layers.mkdir(parents=True, exist_ok=True)
    with exclusive(cache / "images" / "build.lock"):
        return _layers(_below(layers, progress), _own_files(played(reference)), progress)


def image_environment(reference: str = IMAGE_REFERENCE) -> dict[str, str]:
    """Return the variables that a container of an image starts with."""
    return dict(played(reference).config.environment)


_OwnFiles: TypeAlias = "Mapping[str, tuple[LayerFile, ...]]"


def _write(archive: Path, record: Path, images: Sequence[tuple[ImageConfig, tuple[Path, ...]]]) -> None:
    for stale in archive.parent.glob("tritonserver-*"):
        stale.unlink()
    partial = archive.with_suffix(".partial")
    digests = write_images(partial, images)
    partial.rename(archive)
    record.write_text(
        json.dumps({config.reference: digest for (config, _), digest in zip(images, digests, strict=True)})
    )


def _below(layers: Path, progress: Callable[[str], None]) -> tuple[Path, Path]:
    debian = base_layers.debian_layer(layers, progress)
    return debian, base_layers.triton_layer(layers, debian, progress)


def _layers(below: tuple[Path, Path], own: _OwnFiles, progress: Callable[[str], None]) -> tuple[Path, ...]:
    debian = below[0]
    named = {name: debian.parent / f"simulator-{name}-{layer_key(files)[:16]}.tar" for name, files in own.items()}
    for name, layer in named.items():
        if own[name] and not layer.exists():
            for stale in layer.parent.glob(f"simulator-{name}-{'?' * 16}.tar"):
                stale.unlink()
            partial = layer.with_suffix(".partial")
            with with_bytecode(own[name], debian=debian, progress=progress) as compiled:
                write_layer(partial, compiled)
            partial.rename(layer)
    return (*below, *(layer for name, layer in named.items() if own[name]))


def _keys(own: _OwnFiles) -> str:
    return " ".join(layer_key(files) for files in own.values())


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
        LayerFile(f"{SIMULATOR}testbed/__init__.py", _RUNTIME.parent / "__init__.py"),
        LayerFile(f"{SIMULATOR}testbed/runtime/__init__.py", _RUNTIME / "__init__.py"),
    ]
    # What the stand-ins know of upstream's programs, where they look for it in the repository as well.
    contracts = sorted((_RUNTIME.parents[1] / CONTRACTS).glob("*/*.yaml"))
    packages.extend(LayerFile(f"{SIMULATOR}{CONTRACTS}/{file.parent.name}/{file.name}", file) for file in contracts)
    for package in ("inference", "simulator"):
        packages.extend(files_under(_RUNTIME / package, f"{SIMULATOR}testbed/runtime/{package}/"))
    return tuple(packages)


def copy_archive(image: BuiltImage, output: Path) -> None:
    """Copy the archive to where the user wants it."""
    output.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(image.archive, output)

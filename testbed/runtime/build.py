"""Builds the simulator image: the real tritonserver, laid out as NVIDIA's images are, with stand-in backends."""

from __future__ import annotations

import fcntl
import json
import shutil
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.runtime import base_layers
from testbed.runtime.layer_tar import LayerFile, content_key, files_under, write_layer
from testbed.runtime.oci import ImageConfig, write_image
from testbed.runtime.simulator.release import (
    IMAGE_REFERENCE,
    TENSORRT_LLM_VERSION,
    TRITON_RELEASE,
    TRITON_SERVER_VERSION,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_RUNTIME = Path(__file__).parent
_SIMULATOR_ROOT = "opt/specdec-simulator/"
_CONFIG = ImageConfig(
    reference=IMAGE_REFERENCE,
    entrypoint=("/opt/nvidia/nvidia_entrypoint.sh",),
    working_directory="/opt/tritonserver",
    environment=(
        ("PATH", "/opt/tritonserver/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
        ("LD_LIBRARY_PATH", "/opt/tritonserver/lib"),
        ("NVIDIA_TRITON_SERVER_VERSION", TRITON_RELEASE),
        ("TRITON_SERVER_VERSION", TRITON_SERVER_VERSION),
        ("TRITON_SERVER_USER", "triton-server"),
        ("TRITON_SERVER_GPU_ENABLED", "1"),
        ("NVIDIA_VISIBLE_DEVICES", "all"),
        ("NVIDIA_DRIVER_CAPABILITIES", "compute,utility"),
        ("TRT_LLM_VER", TENSORRT_LLM_VERSION),
        ("PYTHONDONTWRITEBYTECODE", "1"),
        ("OMP_NUM_THREADS", "1"),
        ("OPENBLAS_NUM_THREADS", "1"),
        ("SIMULATOR_GPUS", "8"),
        ("SIMULATOR_GPU_PRODUCT", "NVIDIA H100 80GB HBM3"),
    ),
    labels=(
        ("org.opencontainers.image.title", "simulator of NVIDIA's Triton with TensorRT-LLM; no GPU code inside"),
        ("dev.specdec.simulator", "true"),
    ),
)


@dataclass(frozen=True)
class BuiltImage:
    """An image that lies ready to be imported.

    Attributes:
        reference: its name with its tag.
        archive: the OCI archive, to be read by `ctr images import`.
        digest: the manifest's digest, `sha256:…`.
    """

    reference: str
    archive: Path
    digest: str


def build_image(*, cache: Path, progress: Callable[[str], None]) -> BuiltImage:
    """Build the simulator image, or return the one in the cache when its inputs are unchanged.

    Args:
        cache: the testbed's cache folder; layers and archives go below its `images`.
        progress: gets one line for each thing that happens.

    Raises:
        ImageBuildError: a layer can't be made; the message names the step and the remedy.
    """
    images = cache / "images"
    layers = images / "layers"
    layers.mkdir(parents=True, exist_ok=True)
    with _one_build_at_a_time(images):
        below = (base_layers.debian_layer(layers, progress), base_layers.triton_layer(layers, progress))
        own = _own_files()
        key = sha256("\0".join([*(layer.name for layer in below), content_key(own), repr(_CONFIG)]).encode())
        archive = images / f"tritonserver-{key.hexdigest()[:16]}.tar"
        record = archive.with_suffix(".json")
        if not (archive.exists() and record.exists()):
            progress(f"image: writing {archive.name}")
            _write(archive, record, below, own)
        progress(f"image: {IMAGE_REFERENCE} is ready")
        return BuiltImage(IMAGE_REFERENCE, archive, str(json.loads(record.read_text())["digest"]))


def image_layers(*, cache: Path, progress: Callable[[str], None]) -> tuple[Path, ...]:
    """Build the image's layers alone, bottom first: what a test unpacks to have its root file system."""
    layers = cache / "images" / "layers"
    layers.mkdir(parents=True, exist_ok=True)
    with _one_build_at_a_time(cache / "images"):
        below = (base_layers.debian_layer(layers, progress), base_layers.triton_layer(layers, progress))
        return (*below, _own_layer(layers, _own_files()))


def image_environment() -> dict[str, str]:
    """Return the variables that a container of the image starts with."""
    return dict(_CONFIG.environment)


@contextmanager
def _one_build_at_a_time(images: Path) -> Iterator[None]:
    with (images / "build.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _write(archive: Path, record: Path, below: tuple[Path, ...], own: tuple[LayerFile, ...]) -> None:
    for stale in archive.parent.glob("tritonserver-*"):
        stale.unlink()
    partial = archive.with_suffix(".partial")
    digest = write_image(partial, _CONFIG, (*below, _own_layer(below[0].parent, own)))
    partial.rename(archive)
    record.write_text(json.dumps({"reference": IMAGE_REFERENCE, "digest": digest}))


def _own_layer(layers: Path, own: tuple[LayerFile, ...]) -> Path:
    layer = layers / f"simulator-{content_key(own)[:16]}.tar"
    if not layer.exists():
        for stale in layers.glob("simulator-*"):
            stale.unlink()
        partial = layer.with_suffix(".partial")
        write_layer(partial, own)
        partial.rename(layer)
    return layer


def _own_files() -> tuple[LayerFile, ...]:
    packages = [
        LayerFile(f"{_SIMULATOR_ROOT}testbed/__init__.py", _RUNTIME.parent / "__init__.py"),
        LayerFile(f"{_SIMULATOR_ROOT}testbed/runtime/__init__.py", _RUNTIME / "__init__.py"),
    ]
    for package in ("inference", "simulator"):
        packages.extend(files_under(_RUNTIME / package, f"{_SIMULATOR_ROOT}testbed/runtime/{package}/"))
    return (*files_under(_RUNTIME / "image" / "root"), *packages)


def copy_archive(image: BuiltImage, output: Path) -> None:
    """Copy the archive to where the user wants it."""
    output.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(image.archive, output)

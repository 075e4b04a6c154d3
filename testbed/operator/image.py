"""Builds the operator's image from its own Dockerfile, on a base that is made here."""

from __future__ import annotations

import shutil
import tempfile
import tomllib
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

from testbed.cluster.cache import exclusive
from testbed.operator.base_image import base_image, base_recipe
from testbed.operator.buildah import buildah, used_long_ago
from testbed.operator.image_archive import image_digest, write_archive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_ROOT: Final = Path(__file__).parents[2]
_REPOSITORY: Final = "specdec.dev/testbed/specdec-operator"
# What decides the layers below the operator's own code, and what decides the rest.
_BELOW: Final = ("Dockerfile", ".dockerignore", "pyproject.toml", "uv.lock")
_ABOVE: Final = ("LICENSE", "README.md", "operator")
# A cluster may still be importing one that another checkout built.
_ARCHIVES: Final = 3


@dataclass(frozen=True)
class OperatorImage:
    """The operator's image, ready to be imported.

    Attributes:
        reference: name with its tag; the tag changes with the content.
        archive: the OCI archive, to be read by `ctr images import`.
        digest: its manifest's digest, `sha256:…`.
    """

    reference: str
    archive: Path
    digest: str


def build_operator_image(*, cache: Path, progress: Callable[[str], None]) -> OperatorImage:
    """Build the operator's image, or return the one in the cache when its inputs are unchanged.

    Args:
        cache: the testbed's cache folder; everything goes below its `images`.
        progress: gets one line for each thing that happens.

    Raises:
        ImageBuildError: a step failed; the message names it and the remedy.
    """
    images = cache / "images"
    images.mkdir(parents=True, exist_ok=True)
    with exclusive(images / "operator.lock"):
        reference = operator_image_reference()
        if not _archive(images, reference).exists():
            reference = _build(images, progress=progress)
        archive = _archive(images, reference)
        archive.touch()
        for stale in used_long_ago(images, "specdec-operator-*", keep=_ARCHIVES):
            stale.unlink()
        image = OperatorImage(reference, archive, image_digest(archive))
        progress(f"operator image: {reference}: ready")
        return image


def operator_image_reference(root: Path = _ROOT) -> str:
    """Return the name that the image has once it is built from what is in a checkout now."""
    return f"{_REPOSITORY}:{_version(root)}-{_key(_below(root), _contents(root, _ABOVE))}"


def _build(images: Path, *, progress: Callable[[str], None]) -> str:
    """Build from a copy of the checkout, which may be edited meanwhile; returns the image's name."""
    with tempfile.TemporaryDirectory() as folder:
        context = Path(folder)
        for file in _files(_ROOT, (*_BELOW, *_ABOVE)):
            copy = context / file.relative_to(_ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, copy)
        reference = operator_image_reference(context)
        progress(f"operator image: building {reference}")
        (images / "layers").mkdir(exist_ok=True)
        builder = buildah(images / "operator-storage", key=_below(context), progress=progress)
        arguments = {"VERSION": _version(context), "REVISION": f"content-{reference.rpartition('-')[2]}"}
        builder.build(context, base=base_image(images / "layers", progress), arguments=arguments, tag=reference)
    with builder.unpacked(reference) as image:
        archive = _archive(images, reference)
        partial = archive.with_suffix(".partial")
        write_archive(image, partial, reference=reference)
        partial.rename(archive)
    return reference


def _archive(images: Path, reference: str) -> Path:
    return images / f"specdec-operator-{reference.rpartition('-')[2]}.tar"


def _below(root: Path) -> str:
    return _key(base_recipe(), _contents(root, _BELOW))


def _version(root: Path) -> str:
    document = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    return str(document["project"]["version"])


def _contents(root: Path, names: tuple[str, ...]) -> str:
    return _key(*(f"{file.relative_to(root)} {sha256(file.read_bytes()).hexdigest()}" for file in _files(root, names)))


def _files(root: Path, names: tuple[str, ...]) -> Iterator[Path]:
    for path in (root / name for name in names):
        if path.is_file():
            yield path
        else:
            yield from sorted(file for file in path.rglob("*") if file.is_file() and _is_source(file))


def _is_source(file: Path) -> bool:
    return "__pycache__" not in file.parts and file.suffix != ".pyc"


def _key(*parts: str) -> str:
    return sha256("\0".join(parts).encode()).hexdigest()[:16]

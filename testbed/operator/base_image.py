"""The base that the operator's image is built from here: Debian with its own Python, in place of a public one."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from testbed.runtime.oci import ImageConfig, write_image
from testbed.runtime.tools import debian_program, run_shown

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_REFERENCE = "specdec.dev/testbed/python:bookworm"
_SUITE = "bookworm"
# The C++ library is what wheels of numpy and others expect of any base.
_PACKAGES = ("ca-certificates", "libstdc++6", "python3", "python3-venv")
# What public slim images leave out too; licences stay.
_UNWANTED = ("/usr/share/man/*", "/usr/share/doc/*", "/usr/share/locale/*", "/usr/share/info/*")
_KEPT = "/usr/share/doc/*/copyright"


@dataclass(frozen=True)
class BaseImage:
    """An image to build on.

    Attributes:
        reference: its name.
        archive: OCI archive that holds it under this name.
    """

    reference: str
    archive: Path


def base_recipe() -> str:
    """Return all that decides what the base holds."""
    return "\0".join((_REFERENCE, *_arguments()))


def base_image(layers: Path, progress: Callable[[str], None]) -> BaseImage:
    """Return the base; built by mmdebstrap when its recipe is not in the cache yet.

    Raises:
        ImageBuildError: mmdebstrap failed, or is missing and can't be installed.
    """
    archive = layers / f"operator-base-{sha256(base_recipe().encode()).hexdigest()[:16]}.tar"
    if not archive.exists():
        program = debian_program("mmdebstrap", package="mmdebstrap", progress=progress)
        for stale in layers.glob("operator-base-*"):
            stale.unlink()
        layer, partial = archive.with_suffix(".layer"), archive.with_suffix(".partial")
        run_shown([program, "--format=tar", *_arguments(), str(layer)], step="operator base", progress=progress)
        path = ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        write_image(partial, ImageConfig(_REFERENCE, command=("python3",), environment=(path,)), (layer,))
        layer.unlink()
        partial.rename(archive)
    return BaseImage(_REFERENCE, archive)


def _arguments() -> tuple[str, ...]:
    excluded = (f"--dpkgopt=path-exclude={pattern}" for pattern in _UNWANTED)
    packages = ",".join(_PACKAGES)
    return ("--variant=essential", f"--include={packages}", *excluded, f"--dpkgopt=path-include={_KEPT}", _SUITE)

"""The layers below our own: Debian, and the real tritonserver with the Python packages of NVIDIA's images."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.runtime import bytecode
from testbed.runtime.layer_tar import LayerFile, files_under, write_layer
from testbed.runtime.tools import debian_program, pip_install_argv, run_shown

if TYPE_CHECKING:
    from collections.abc import Callable

_IMAGE = Path(__file__).parent / "image"
_DEBIAN_PACKAGES = ("ca-certificates", "libpython3.11", "openmpi-bin", "procps", "python3")
_UNWANTED = ("/usr/share/man/*", "/usr/share/doc/*", "/usr/share/locale/*", "/usr/share/info/*")
# Only the installation itself needs more of Perl than perl-base.
_PERL = '"$1/usr/share/perl" "$1/usr/lib/x86_64-linux-gnu/perl"'
_TRITON = "opt/tritonserver/"


def debian_layer(layers: Path, progress: Callable[[str], None]) -> Path:
    """Return the Debian layer; built by mmdebstrap when its recipe is not in the cache yet.

    Raises:
        ImageBuildError: mmdebstrap failed, or is missing and can't be installed.
    """
    recipe = _debian_arguments()
    layer = layers / f"debian-{_key(recipe)}.tar"
    if not layer.exists():
        program = debian_program("mmdebstrap", package="mmdebstrap", progress=progress)
        partial = layer.with_suffix(".partial")
        run_shown([program, "--format=tar", *recipe, "bookworm", str(partial)], step="debian", progress=progress)
        partial.rename(layer)
    return layer


def _debian_arguments() -> list[str]:
    excluded = [f"--dpkgopt=path-exclude={pattern}" for pattern in _UNWANTED]
    licences = "--dpkgopt=path-include=/usr/share/doc/*/copyright"
    # NVIDIA's images have this user, without a home of its own.
    user = '--customize-hook=chroot "$1" useradd --uid 1000 --user-group --no-create-home triton-server'
    perl = f"--customize-hook=rm -r {_PERL}"
    packages = ",".join(_DEBIAN_PACKAGES)
    return ["--variant=minbase", f"--include={packages}", *excluded, licences, user, perl]


def triton_layer(layers: Path, debian: Path, progress: Callable[[str], None]) -> Path:
    """Return the layer of tritonserver and the Python packages; unpacked from wheels when not in the cache yet.

    Args:
        layers: the cache's folder.
        debian: the layer below, whose Python compiles the packages.
        progress: gets one line for each thing that happens.

    Raises:
        ImageBuildError: the wheels can't be had.
    """
    locks = [_IMAGE / "tritonserver.txt", _IMAGE / "requirements.txt", Path(__file__), Path(bytecode.__file__)]
    layer = layers / f"triton-{_key([lock.read_text() for lock in locks])}.tar"
    if not layer.exists():
        partial = layer.with_suffix(".partial")
        with tempfile.TemporaryDirectory(dir=layers) as scratch:
            triton, packages = Path(scratch) / "triton", Path(scratch) / "packages"
            for requirements, target, glibc in ((locks[0], triton, "2_35"), (locks[1], packages, "2_28")):
                argv = pip_install_argv(requirements=requirements, target=target, glibc=glibc)
                run_shown(argv, step="wheels", progress=progress)
            files = [*_triton_files(triton), *_package_files(packages)]
            with bytecode.with_bytecode(files, debian=debian, progress=progress) as compiled:
                write_layer(partial, compiled)
        partial.rename(layer)
    return layer


def _triton_files(wheel: Path) -> list[LayerFile]:
    server = wheel / "pytriton" / "tritonserver"
    stub = server / "python_backend_stubs" / "3.11" / "triton_python_backend_stub"
    backends = files_under(server / "backends", f"{_TRITON}backends/")
    # The wheel's programs look for their libraries in ../../../nvidia_pytriton.libs, which is no place of
    # NVIDIA's layout: the image names this folder in LD_LIBRARY_PATH.
    libraries = files_under(wheel / "nvidia_pytriton.libs", f"{_TRITON}lib/")
    return [
        LayerFile(f"{_TRITON}bin/tritonserver", server / "bin" / "tritonserver", executable=True),
        LayerFile(f"{_TRITON}backends/python/triton_python_backend_stub", stub, executable=True),
        *backends,
        *libraries,
        *files_under(server / "caches", f"{_TRITON}caches/"),
    ]


def _package_files(packages: Path) -> list[LayerFile]:
    shutil.rmtree(packages / "bin", ignore_errors=True)  # scripts of this machine's interpreter
    return [
        LayerFile(f"{bytecode.SITE_PACKAGES}{file.path}", file.source)
        for file in files_under(packages)
        if "tests" not in Path(file.path).parts
    ]


def _key(parts: list[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]

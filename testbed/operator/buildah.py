"""Buildah with a storage of its own: the user's containers and images are never touched, nothing stays mounted."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.operator.build_secrets import secret_arguments
from testbed.runtime.tools import debian_program, run_shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from testbed.operator.base_image import BaseImage

# An edit adds three, of 10 MB together; beyond this the storage is made anew instead of growing for ever.
_MOST_LAYERS = 300
# Another checkout, or the commit before, may build in turn with this one.
_STORAGES = 2
# No image is pulled from anywhere: what comes in was made here.
_POLICY = '{"default": [{"type": "insecureAcceptAnything"}]}'
# Buildah and all that it starts live in namespaces that end with this program: a killed build leaves no process
# and no mount behind.
_CONTAINED = ("setpriv", "--pdeathsig=KILL", "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")


@dataclass(frozen=True)
class Buildah:
    """Builds images; its layer cache makes a second build short.

    Attributes:
        program: path of buildah.
        directory: its storage; the caller holds a lock on it.
        progress: gets each line that buildah prints.
    """

    program: str
    directory: Path
    progress: Callable[[str], None]

    def build(self, context: Path, *, base: BaseImage, arguments: Mapping[str, str], tag: str) -> None:
        """Build a Dockerfile.

        Args:
            context: the folder that holds the Dockerfile and what it copies.
            base: what the build argument `BASE_IMAGE` names.
            arguments: further build arguments.
            tag: the image's name in this storage.

        Raises:
            ImageBuildError: an instruction failed; the message ends with what it printed.
        """
        self._run("rm", "--all")  # what a killed build left
        self._import(base)
        given = (f"--build-arg={name}={value}" for name, value in arguments.items())
        with tempfile.TemporaryDirectory(dir=self._scratch) as secrets:
            self._run(
                "build",
                # The timestamp is in every layer, so that the same files make the same layers.
                *("--isolation=chroot", "--layers", "--timestamp=0", "--pull=never", f"--tag={tag}"),
                *(f"--signature-policy={self._policy}", f"--build-arg=BASE_IMAGE={base.reference}", *given),
                *secret_arguments(os.environ, Path(secrets)),
                str(context),
            )

    @contextmanager
    def unpacked(self, tag: str) -> Iterator[Path]:
        """Write an image into a folder, uncompressed: `manifest.json`, and its blobs by digest; gone after the body.

        Raises:
            ImageBuildError: it can't be written.
        """
        with tempfile.TemporaryDirectory(dir=self._scratch) as folder:
            policy = f"--signature-policy={self._policy}"
            self._run("push", "--quiet", "--disable-compression", policy, "--format=oci", tag, f"dir:{folder}")
            yield Path(folder)

    def _import(self, base: BaseImage) -> None:
        record = self.directory / f"{base.archive.stem}.imported"
        if not record.exists():
            self._run("pull", "--quiet", f"--signature-policy={self._policy}", f"oci-archive:{base.archive}")
            record.touch()

    @property
    def _scratch(self) -> Path:
        return self.directory / "scratch"

    @property
    def _policy(self) -> Path:
        return self.directory / "policy.json"

    def _run(self, *arguments: str) -> None:
        storage = (f"--root={self.directory / 'root'}", f"--runroot={self.directory / 'run'}")
        environment = ("env", f"TMPDIR={self._scratch}", f"XDG_RUNTIME_DIR={self._scratch}")
        argv = [*_CONTAINED, *environment, self.program, *storage, "--storage-driver=overlay", *arguments]
        run_shown(argv, step="operator image", progress=self.progress)


def buildah(directory: Path, *, key: str, progress: Callable[[str], None]) -> Buildah:
    """Return buildah with its storage for a key; storages used longer ago, and one that grew too large, are removed.

    Args:
        directory: folder of the storages; the caller holds a lock on it.
        key: what decides the layers that are worth keeping, as a file name.
        progress: gets one line for each thing that happens.

    Raises:
        ToolMissingError: buildah is missing and can't be installed.
    """
    program = debian_program("buildah", package="buildah", progress=progress)
    storage = directory / key
    if len(list(storage.glob("root/overlay/*"))) > _MOST_LAYERS:
        shutil.rmtree(storage)
    for folder in ("scratch", "run"):
        shutil.rmtree(storage / folder, ignore_errors=True)
    (storage / "scratch").mkdir(parents=True, mode=0o700)
    (storage / "policy.json").write_text(_POLICY, encoding="utf-8")
    storage.touch()
    for stale in used_long_ago(directory, "*", keep=_STORAGES):
        shutil.rmtree(stale)
    return Buildah(program, storage, progress)


def used_long_ago(directory: Path, pattern: str, *, keep: int) -> Sequence[Path]:
    """Name what may go: all but the few that were touched last."""
    return sorted(directory.glob(pattern), key=lambda path: path.stat().st_mtime, reverse=True)[keep:]

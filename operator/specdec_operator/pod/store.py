"""The store: what it must be able to do, and how a directory is published in it, whole or not at all."""

import errno
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from specdec_operator.pod.errors import ProgramFailure
from specdec_operator.pod.manifest import Manifest, damages, read_manifest
from specdec_operator.pod.model_files import MANIFEST_NAME


@contextmanager
def store_errors(store: Path) -> Iterator[None]:
    """Turn the operating system's errors about the store into reasons with remedies.

    Raises:
        ProgramFailure: StoreFull, StoreNotWritable or StoreUnsuitable.
    """
    try:
        yield
    except OSError as error:
        failure = _failure(store, error)
        if failure is None:
            raise
        raise failure from error


def probe(store: Path) -> None:
    """Prove that the store can do what publishing needs: make, fsync and rename files and directories.

    Raises:
        ProgramFailure: StoreUnsuitable, StoreNotWritable or StoreFull.
    """
    name = f".specdec-probe-{uuid.uuid4().hex}"
    before, after = store / name, store / f"{name}-renamed"
    with store_errors(store):
        try:
            _probe_publishing(before, after)
        finally:
            shutil.rmtree(before, ignore_errors=True)
            shutil.rmtree(after, ignore_errors=True)


def require_free(store: Path, needed_bytes: int) -> None:
    """Refuse work that the store has no room for.

    Raises:
        ProgramFailure: StoreFull.
    """
    with store_errors(store):
        status = os.statvfs(store)
    free = status.f_bavail * status.f_frsize
    if free < needed_bytes:
        raise ProgramFailure(
            "StoreFull",
            f"the store needs {_size(needed_bytes)} more, it has {_size(free)} free; enlarge the claim or delete "
            "models and engines that nothing uses",
        )


def publish(scratch: Path, target: Path, manifest: Manifest) -> Manifest:
    """Publish a finished directory: manifest last, then one rename.

    Args:
        scratch: the finished directory, on the store's volume; gone afterwards.
        target: where it is published.
        manifest: its manifest.

    Returns:
        The manifest of what is at the target: another pod may have been first, and its whole directory is kept.

    Raises:
        OSError: the volume failed.
    """
    _fsync_files(scratch)
    _write_manifest(scratch, manifest)
    target.parent.mkdir(parents=True, exist_ok=True)
    present = published(target, kind=manifest.kind)
    if present is None:
        _make_room(target)
        present = _rename(scratch, target, manifest)
    shutil.rmtree(scratch, ignore_errors=True)
    return present


def published(target: Path, *, kind: str) -> Manifest | None:
    """The manifest of a directory that is there and whole; None otherwise."""
    manifest = read_manifest(target, kind=kind)
    if manifest is None or any(damages(target, manifest)):
        return None
    return manifest


def _rename(scratch: Path, target: Path, manifest: Manifest) -> Manifest:
    try:
        scratch.rename(target)
    except OSError as error:
        if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
            raise
        present = published(target, kind=manifest.kind)
        if present is None:
            raise
        return present
    _fsync_directory(target.parent)
    return manifest


def _make_room(target: Path) -> None:
    # nothing without a valid manifest is ever read, so what lies there is the rest of something broken
    if target.exists():
        grave = target.with_name(f".{target.name}-{uuid.uuid4().hex}")
        target.rename(grave)
        shutil.rmtree(grave, ignore_errors=True)


def _write_manifest(directory: Path, manifest: Manifest) -> None:
    temporary = directory / f".{MANIFEST_NAME}.tmp"
    with temporary.open("w", encoding="utf-8") as file:
        file.write(manifest.to_json())
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(directory / MANIFEST_NAME)
    _fsync_directory(directory)


def _fsync_files(directory: Path) -> None:
    for parent, _, names in os.walk(directory):
        for name in names:
            descriptor = os.open(Path(parent) / name, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        _fsync_directory(Path(parent))


def _fsync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # some network file systems sync directories by themselves and refuse the call
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def _probe_publishing(before: Path, after: Path) -> None:
    before.mkdir()
    temporary = before / "file.tmp"
    with temporary.open("w", encoding="ascii") as file:
        file.write("probe")
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(before / "file")
    _fsync_directory(before)
    before.rename(after)
    if (after / "file").read_text(encoding="ascii") != "probe":
        raise OSError(errno.EIO, "a renamed directory lost its content")


def _failure(store: Path, error: OSError) -> ProgramFailure | None:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return ProgramFailure("StoreFull", f"the store is full: {error}; enlarge the claim or delete what nothing uses")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return ProgramFailure(
            "StoreNotWritable",
            f"the store can't be written as uid {os.getuid()}, gid {os.getgid()}: {error}; set "
            "spec.pod.fsGroup to a group that owns the volume, or give the directory to that user",
        )
    if error.errno in (errno.ENOSYS, errno.ENOTSUP, errno.EXDEV, errno.EINVAL, errno.EIO):
        return ProgramFailure(
            "StoreUnsuitable",
            f"the store {store} can't rename or sync as publishing needs: {error}; use a storage class with a POSIX "
            "file system",
        )
    return None


def _size(count: int) -> str:
    amount = float(count)
    for unit in ("bytes", "KiB", "MiB"):
        if amount < 1024:
            return f"{amount:.1f} {unit}" if unit != "bytes" else f"{count} bytes"
        amount /= 1024
    return f"{amount:.1f} GiB"

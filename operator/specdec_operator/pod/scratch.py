"""A build's scratch folder: one for each pod, on the store's volume."""

import shutil
from pathlib import Path


def own_scratch(store: Path, *, directory: str, pod_uid: str) -> Path:
    """Make this pod's empty scratch folder, and remove those that earlier pods of the same key left.

    Args:
        store: the store.
        directory: where the result goes; its last part is the key.
        pod_uid: this pod.
    """
    folder = store / "scratch" / Path(directory).name
    folder.mkdir(parents=True, exist_ok=True)
    for entry in folder.iterdir():
        shutil.rmtree(entry, ignore_errors=True)
    scratch = folder / pod_uid
    scratch.mkdir()
    return scratch


def remove_scratch(scratch: Path) -> None:
    """Remove a scratch folder, and its parents as far as they are empty."""
    shutil.rmtree(scratch, ignore_errors=True)
    for folder in (scratch.parent, scratch.parent.parent):
        try:
            folder.rmdir()
        except OSError:
            return

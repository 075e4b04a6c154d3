"""Paths that can't leave their volume."""

from pathlib import Path, PurePosixPath

from specdec_operator.pod.errors import ProgramFailure


def inside(root: Path, relative: str) -> Path:
    """The path `relative` below `root`.

    Raises:
        ProgramFailure: PathOutsideStore, it is absolute, empty, or leaves the root by `..` or by a symbolic link.
    """
    path = PurePosixPath(relative)
    if path.is_absolute() or not path.parts or ".." in path.parts:
        raise ProgramFailure(
            "PathOutsideStore", f"{relative!r} must be a relative path without .., it is taken below {root}"
        )
    joined = root / path
    if not joined.resolve().is_relative_to(root.resolve()):
        raise ProgramFailure("PathOutsideStore", f"{joined} leads outside of {root} through a symbolic link; remove it")
    return joined

"""The bytecode of a layer's Python modules: without it every process of a pod compiles what it imports anew.

pip writes it where it installs, and so NVIDIA's images hold it too. It is made by the image's own Python, whichever
this machine has.
"""

from __future__ import annotations

import tarfile
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from testbed.runtime.layer_tar import LayerFile, content_key
from testbed.runtime.tools import run_shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

SITE_PACKAGES: Final = "usr/local/lib/python3.11/dist-packages/"
SIMULATOR: Final = "opt/specdec-simulator/"
PYTHON_BACKEND: Final = "opt/tritonserver/backends/python/"
# Not the models of /app: what lies in a template becomes part of a user's model repository.
_IMPORTED_FROM: Final = (SITE_PACKAGES, SIMULATOR, PYTHON_BACKEND)
_INTERPRETER: Final = "usr/bin/python3.11"
_LIBRARIES: Final = "usr/lib/x86_64-linux-gnu"
_LOADER: Final = f"{_LIBRARIES}/ld-linux-x86-64.so.2"
_PYTHON_NEEDS: Final = (
    _INTERPRETER,
    "usr/lib/python3.11/",
    *(f"{_LIBRARIES}/{library}.so" for library in ("ld-linux-x86-64", "libc", "libm", "libz", "libexpat")),
)


@contextmanager
def with_bytecode(
    files: Sequence[LayerFile], *, debian: Path, progress: Callable[[str], None]
) -> Iterator[tuple[LayerFile, ...]]:
    """Compile the modules among a layer's files, and give the files with their bytecode for as long as it is used.

    Args:
        files: of the layer.
        debian: the layer that holds the image's Python.
        progress: gets one line for each thing that happens.

    Raises:
        ImageBuildError: a module can't be compiled.
    """
    modules = [file for file in files if file.path.startswith(_IMPORTED_FROM) and file.path.endswith(".py")]
    if not modules:
        yield tuple(files)
        return
    with tempfile.TemporaryDirectory(dir=debian.parent) as scratch:
        python, tree = Path(scratch) / "python", Path(scratch) / "tree"
        _unpack_python(debian, python)
        for module in modules:
            place = tree / module.path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(module.source.read_bytes())
        run_shown(_compile_argv(python, tree), step="bytecode", progress=progress)
        made = [LayerFile(str(path.relative_to(tree)), path) for path in tree.rglob("*.pyc")]
        yield (*files, *made)


def layer_key(files: Sequence[LayerFile]) -> str:
    """The hash of all that decides a layer's bytes, as 64 hexadecimal digits: its files, and how they are compiled."""
    return content_key((*files, LayerFile("bytecode", Path(__file__))))


def _compile_argv(python: Path, tree: Path) -> list[str]:
    # A layer above may hold another text of a module, with the same length and time: the hash tells them apart.
    compiled = ["-m", "compileall", "-q", "--invalidation-mode", "checked-hash"]
    loaded = [str(python / _LOADER), "--library-path", str(python / _LIBRARIES), str(python / _INTERPRETER)]
    return [*loaded, "-I", "-S", *compiled, "-s", str(tree), "-p", "/", str(tree)]


def _unpack_python(debian: Path, target: Path) -> None:
    with tarfile.open(debian) as layer:
        entries = (entry for entry in layer if not entry.linkname.startswith("/"))
        needed = [entry for entry in entries if entry.name.removeprefix("./").startswith(_PYTHON_NEEDS)]
        # The argument `filter` came with 3.11.4; some systems' Python 3.11 is older.
        layer.extraction_filter = lambda member, _path: member
        layer.extractall(target, needed)  # noqa: S202 - the layer was made here

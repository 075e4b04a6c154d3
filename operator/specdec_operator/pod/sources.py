"""The programs' own source, as ConfigMap data. Read by the operator, never shipped."""

import ast
import functools
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources

PACKAGE = "specdec_operator.pod"
PROGRAM_DIRECTORY = "/specdec/program"
ENTRY = "__main__.py"
PROGRAMS = frozenset(
    {"fetch", "inspect_model", "build", "verify_engine", "inspect_engine", "assemble", "check", "launch", "canary"}
    | {"liveness"}
)


@dataclass(frozen=True)
class MountItem:
    """A ConfigMap key and the path that it gets in the volume."""

    key: str
    path: str


def program_files(*names: str) -> dict[str, str]:
    """ConfigMap data that holds programs, every module that they import, and the entry that runs them.

    Args:
        names: programs, as in PROGRAMS.

    Raises:
        ValueError: a name is no program.
    """
    unknown = sorted(set(names) - PROGRAMS)
    if unknown:
        raise ValueError(f"no such program: {', '.join(unknown)}; the programs are {', '.join(sorted(PROGRAMS))}")
    texts: dict[str, str] = {}
    waiting = list(names)
    while waiting:
        module = waiting.pop()
        if module not in texts:
            texts[module] = _source(module)
            waiting.extend(_imports(module))
    return {ENTRY: _source("__main__"), **{f"{PACKAGE}.{module}.py": texts[module] for module in sorted(texts)}}


def mount_items(keys: Iterable[str]) -> list[MountItem]:
    """Where each key of `program_files` lies below PROGRAM_DIRECTORY."""
    return [MountItem(key, f"{key.removesuffix('.py').replace('.', '/')}.py") for key in sorted(keys)]


@functools.cache
def _source(module: str) -> str:
    return resources.files(PACKAGE).joinpath(f"{module}.py").read_text(encoding="utf-8")


@functools.cache
def _imports(module: str) -> frozenset[str]:
    modules: set[str] = set()
    for node in ast.walk(ast.parse(_source(module))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{PACKAGE}."):
            modules.add((node.module or "").removeprefix(f"{PACKAGE}."))
        elif isinstance(node, ast.Import):
            modules.update(
                alias.name.removeprefix(f"{PACKAGE}.") for alias in node.names if alias.name.startswith(f"{PACKAGE}.")
            )
    return frozenset(modules)

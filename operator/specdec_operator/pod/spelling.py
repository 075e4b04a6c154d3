"""How the image spells an option, read from its Python source without importing it: an import needs a GPU's driver."""

import ast
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from specdec_operator.pod.inputs import SpellingProbe


@dataclass(frozen=True)
class Spelling:
    """A spelling that was decided on.

    Attributes:
        text: the spelling.
        note: why it isn't the expected one, or isn't known to be; empty if the image confirms it.
    """

    text: str
    note: str = ""


def probe_spelling(probe: SpellingProbe) -> Spelling:
    """Ask the image's source; the expected spelling stays where the source doesn't tell."""
    path = _source(probe.module)
    if path is None:
        return Spelling(probe.expected, f"{probe.name}: the image holds no {probe.module}, {probe.expected} is taken")
    try:
        found = _spellings(probe, ast.parse(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, SyntaxError) as error:
        return Spelling(probe.expected, f"{probe.name}: {path} can't be read ({error}), {probe.expected} is taken")
    if not found:
        return Spelling(
            probe.expected, f"{probe.name}: {path} does not tell how it is spelled, {probe.expected} is taken"
        )
    if probe.expected in found:
        return Spelling(probe.expected)
    return Spelling(found[0], f"{probe.name}: {path} spells it {found[0]}, the release's row says {probe.expected}")


def _source(module: str) -> Path | None:
    package, *inner = module.split(".")
    # Only the package itself is looked for: looking for what is inside would import it.
    specification = importlib.util.find_spec(package)
    for location in (specification.submodule_search_locations or ()) if specification else ():
        path = Path(location).joinpath(*inner).with_suffix(".py")
        if path.is_file():
            return path
    return None


def _spellings(probe: SpellingProbe, tree: ast.Module) -> list[str]:
    keys = [key for node in ast.walk(tree) for key in _keys(probe, node)]
    return keys or [text for node in ast.walk(tree) for text in _literals(probe, node)]


def _keys(probe: SpellingProbe, node: ast.AST) -> Iterator[str]:
    """Keys of the parser's dictionary that lead to the class."""
    if _assigned(node) != probe.dictionary or not isinstance(node, (ast.Assign, ast.AnnAssign)):
        return
    if isinstance(node.value, ast.Dict):
        for key, value in zip(node.value.keys, node.value.values):  # noqa: B905 - the image's Python may be old
            if isinstance(key, ast.Constant) and isinstance(key.value, str) and _last(value) == probe.class_name:
                yield key.value


def _literals(probe: SpellingProbe, node: ast.AST) -> Iterator[str]:
    """Values that the class's field may have, where its type is a `Literal`."""
    if not isinstance(node, ast.ClassDef) or node.name != probe.class_name:
        return
    for statement in node.body:
        if isinstance(statement, ast.AnnAssign) and _assigned(statement) == probe.field:
            for part in ast.walk(statement.annotation):
                if isinstance(part, ast.Subscript) and _last(part.value) == "Literal":
                    yield from (
                        constant.value
                        for constant in ast.walk(part.slice)
                        if isinstance(constant, ast.Constant) and isinstance(constant.value, str)
                    )


def _assigned(node: ast.AST) -> str:
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        return _last(node.targets[0])
    return _last(node.target) if isinstance(node, ast.AnnAssign) else ""


def _last(node: ast.AST) -> str:
    """The last word of a dotted name."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""

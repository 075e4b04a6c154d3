"""Reading Kubernetes objects from YAML files, as strictly as kubectl does."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from specdec_operator.cli.errors import UnreadableFileError

if TYPE_CHECKING:
    from collections.abc import Iterator

STDIN = "-"


@dataclass(frozen=True)
class Document:
    """One object of a file.

    Attributes:
        file: As the user named it.
        name: `metadata.name`, or `line N` where it has none.
        content: The object.
    """

    file: str
    name: str
    content: dict[str, Any]


def read_documents(file: str) -> list[Document]:
    """Read every object of a YAML file.

    Args:
        file: The file's path, or `-` for standard input.

    Raises:
        UnreadableFileError: There is no such file, it is no YAML, a key occurs twice, or a document is no object or is
            nested too deeply.
    """
    try:
        text = sys.stdin.read() if file == STDIN else Path(file).read_text(encoding="utf-8")
        return list(_documents(file, text))
    except UnicodeDecodeError as error:
        raise UnreadableFileError(f"{file}: not UTF-8 text (byte {error.start})") from error
    except OSError as error:
        raise UnreadableFileError(f"{file}: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise UnreadableFileError(_located(file, error)) from error
    except RecursionError as error:
        raise UnreadableFileError(f"{file}: nested too deeply to be a Kubernetes object") from error


def _documents(file: str, text: str) -> Iterator[Document]:
    loader = _StrictLoader(text)
    try:
        while loader.check_node() and (node := loader.get_node()) is not None:
            line = node.start_mark.line + 1
            # Deep, so that an object that holds itself is an error instead of an endless one.
            content = loader.construct_object(node, deep=True)
            if content is None:
                continue
            if not isinstance(content, dict):
                raise UnreadableFileError(
                    f"{file}:{line}: not a Kubernetes object: give a map with apiVersion and kind"
                )
            yield Document(file, _name(content) or f"line {line}", content)
    finally:
        loader.dispose()


def _name(content: dict[str, Any]) -> str:
    metadata = content.get("metadata")
    if not isinstance(metadata, dict):
        return ""
    return str(metadata.get("name") or metadata.get("generateName") or "")


def _located(file: str, error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return f"{file}:{error.problem_mark.line + 1}: {error.problem or error.context}"
    return f"{file}: {' '.join(str(error).split())}"


class _StrictLoader(yaml.SafeLoader):
    """Refuses a key that occurs twice, and takes dates as text, as kubectl does.

    It is not libyaml's, which ends the process where a text is nested too deeply.
    """

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002  PyYAML's signature
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen and key.value != "<<":
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key.value!r} occurs twice in one map; remove one", key.start_mark
                )
            seen.add(str(key.value))
        return super().construct_mapping(node, deep)


def _as_text(loader: _StrictLoader, node: yaml.ScalarNode) -> str:
    return str(loader.construct_scalar(node))


_StrictLoader.add_constructor("tag:yaml.org,2002:timestamp", _as_text)

"""Reading Kubernetes objects from files, as strictly as kubectl does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from specdec_operator.api.documents import Document, DocumentError, read_text
from specdec_operator.cli.errors import UnreadableFileError
from specdec_operator.cli.files import manifest_files, read_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


_LIST: Final = "List"


@dataclass(frozen=True)
class Manifest:
    """One object of a file.

    Attributes:
        file: As the user named it.
        content: The object.
        document: The same with its place in the file.
    """

    file: str
    content: dict[str, Any]
    document: Document

    @property
    def name(self) -> str:
        """`metadata.name`, or `line N` where it has none."""
        metadata = self.content.get("metadata")
        named = metadata if isinstance(metadata, dict) else {}
        return str(named.get("name") or named.get("generateName") or f"line {self.document.line}")

    @property
    def kind(self) -> str:
        """The object's kind; empty where it has none."""
        return str(self.content.get("kind", ""))

    @property
    def place(self) -> str:
        """How messages name it."""
        return f"{self.file}:{self.name}"


@dataclass(frozen=True)
class EmptyFile:
    """A file without an object."""

    file: str


def read_objects(
    given: Iterable[str], *, recursive: bool = False
) -> Iterator[Manifest | UnreadableFileError | EmptyFile]:
    """Read every object of files and directories.

    Args:
        recursive: Look into the directories of a directory, too.

    Yields:
        Objects, and what can't be read: it does not keep the rest from being read.
    """
    for file in manifest_files(given, recursive=recursive):
        found = [file] if isinstance(file, UnreadableFileError) else list(_read(file))
        yield from found or [EmptyFile(str(file))]


def read_documents(file: str) -> list[Manifest]:
    """Read every object of one file.

    Raises:
        UnreadableFileError: Something of it can't be read.
    """
    found = list(_read(file))
    for read in found:
        if isinstance(read, UnreadableFileError):
            raise read
    return [read for read in found if isinstance(read, Manifest)]


def _read(file: str) -> Iterator[Manifest | UnreadableFileError]:
    try:
        text = read_file(file)
    except UnreadableFileError as error:
        yield error
        return
    for document in read_text(text):
        if isinstance(document, DocumentError):
            yield UnreadableFileError(file, str(document), document.line)
        else:
            yield from _objects(file, document)


def _objects(file: str, document: Document) -> Iterator[Manifest | UnreadableFileError]:
    """An object, or those of a list."""
    content = document.content
    if not isinstance(content, dict):
        yield UnreadableFileError(file, "not a Kubernetes object: give a map with apiVersion and kind", document.line)
        return
    kind = str(content.get("kind", ""))
    if not kind.endswith(_LIST) or not isinstance(content.get("items", kind), list | None):
        yield Manifest(file, content, document)
        return
    for index in range(len(content["items"] or ())):
        yield from _objects(file, _typed(document.part(("items", index)), kind.removesuffix(_LIST), content))


def _typed(item: Document, kind: str, listed: dict[str, Any]) -> Document:
    """An item with what the list says of all of them, as in the API server's own lists."""
    if not kind or not isinstance(item.content, dict):
        return item
    types = {key: value for key, value in (("apiVersion", listed.get("apiVersion")), ("kind", kind)) if value}
    return Document({**types, **item.content}, item.node, item.above)

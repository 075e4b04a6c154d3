"""The repositories that the hub serves: read from a YAML file, with commits derived from their content."""

import hashlib
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from testbed.hub.errors import Refusal, RepositoriesFileError

# Files of these kinds are large ones on the public hub, and known there by their SHA-256.
LARGE_SUFFIXES = (".safetensors", ".bin", ".pt")

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*$")]


class _Declared(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class User(_Declared):
    """Somebody with a token."""

    name: str
    token: str


class DeclaredRevision(_Declared):
    """A commit: the files of a directory, some left out, and the branches and tags that point at it."""

    directory: Path
    names: tuple[str, ...]
    without: tuple[str, ...] = ()


class DeclaredRepository(_Declared):
    """A repository; `accepted` names the users that may read a gated one."""

    name: Name
    revisions: tuple[DeclaredRevision, ...] = Field(min_length=1)
    gated: bool = False
    accepted: tuple[str, ...] = ()


class RepositoriesFile(_Declared):
    """The whole YAML file."""

    users: tuple[User, ...] = ()
    repositories: tuple[DeclaredRepository, ...]


@dataclass(frozen=True)
class StoredFile:
    """A file of a commit.

    Attributes:
        path: inside the repository.
        source: where its bytes are.
        size: in bytes.
        blob_id: git's SHA-1 of the content.
        sha256: of the content, for large files.
    """

    path: str
    source: Path
    size: int
    blob_id: str
    sha256: str | None

    @property
    def etag(self) -> str:
        """What the file's content is known by."""
        return self.sha256 or self.blob_id


@dataclass(frozen=True)
class Commit:
    """An immutable state of a repository; `files` by path."""

    id: str
    files: dict[str, StoredFile]

    def file(self, path: str) -> StoredFile:
        """Return a file, or refuse with EntryNotFound."""
        if path not in self.files:
            raise Refusal(HTTPStatus.NOT_FOUND, f"Entry not found: {path}", "EntryNotFound")
        return self.files[path]


@dataclass
class Repository:
    """A repository: its commits, and what its branches and tags point at."""

    name: str
    gated: bool
    accepted: frozenset[str]
    commits: dict[str, Commit] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)

    def commit(self, revision: str) -> Commit:
        """Return what a branch, a tag or a full commit id means, or refuse with RevisionNotFound."""
        commit = self.commits.get(self.names.get(revision, revision))
        if commit is None:
            raise Refusal(HTTPStatus.NOT_FOUND, f"Invalid rev id: {revision}", "RevisionNotFound")
        return commit

    def point(self, name: str, revision: str) -> None:
        """Move a branch or tag to another commit, as a push does."""
        self.names[name] = self.commit(revision).id


@dataclass(frozen=True)
class Catalogue:
    """All repositories by name, and all users' names by token."""

    repositories: dict[str, Repository]
    users: dict[str, str]


def read_catalogue(file: Path) -> Catalogue:
    """Read the YAML file; its directories are relative to it.

    Raises:
        RepositoriesFileError: the file or a directory that it names can't be used.
    """
    try:
        declared = RepositoriesFile.model_validate(yaml.safe_load(file.read_text()))
    except (OSError, yaml.YAMLError, ValidationError) as error:
        raise RepositoriesFileError(f"{file}: {error}") from error
    repositories = {each.name: _repository(each, file.parent) for each in declared.repositories}
    return Catalogue(repositories, {user.token: user.name for user in declared.users})


def _repository(declared: DeclaredRepository, root: Path) -> Repository:
    repository = Repository(declared.name, declared.gated, frozenset(declared.accepted))
    for revision in declared.revisions:
        commit = _commit(declared.name, revision, root)
        repository.commits[commit.id] = commit
        for name in revision.names:
            repository.point(name, commit.id)
    return repository


def _commit(repository: str, revision: DeclaredRevision, root: Path) -> Commit:
    directory = root / revision.directory
    paths = sorted(path for path in directory.rglob("*") if path.is_file())
    if not paths:
        raise RepositoriesFileError(f"{repository}: directory {directory} is missing or empty")
    stored = [_stored(path, path.relative_to(directory).as_posix()) for path in paths]
    files = {each.path: each for each in stored if each.path not in revision.without}
    listing = "\n".join(f"{each.blob_id} {each.path}" for each in files.values())
    # The same content gives the same id on every machine, so that documents and tests may pin it.
    return Commit(_sha1(f"{repository}\n{listing}".encode()), files)


def _stored(source: Path, path: str) -> StoredFile:
    content = source.read_bytes()
    sha256 = hashlib.sha256(content).hexdigest() if source.suffix in LARGE_SUFFIXES else None
    blob_id = _sha1(f"blob {len(content)}\0".encode() + content)
    return StoredFile(path=path, source=source, size=len(content), blob_id=blob_id, sha256=sha256)


def _sha1(content: bytes) -> str:
    return hashlib.sha1(content, usedforsecurity=False).hexdigest()

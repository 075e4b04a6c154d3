"""The model hub, through the huggingface_hub of the image: any version from 0.23 on, imported only when needed."""

import fnmatch
import glob
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from specdec_operator.pod.errors import Interrupted, ProgramFailure

_NEVER_FETCHED = ("original/*", "*.pth", "*.gguf", "*.onnx", "*.h5", "*.msgpack", "*.tflite", ".*", "training_args.bin")
_UNREACHABLE = frozenset(
    {
        "ConnectError",
        "ConnectTimeout",
        "ConnectionError",
        "LocalEntryNotFoundError",
        "NetworkError",
        "OfflineModeIsEnabled",
        "ProtocolError",
        "ReadTimeout",
        "RemoteProtocolError",
        "Timeout",
        "TimeoutException",
        "TransportError",
        "ChunkedEncodingError",
    }
)


@dataclass(frozen=True)
class HubFile:
    """One file of a repository; an empty sha256: the hub doesn't say."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Listing:
    """A repository at one commit, with the files that a runtime needs."""

    commit: str
    files: tuple[HubFile, ...]


class Hub:
    """A model hub.

    Args:
        endpoint: its address; the client's own default if empty.
        token: the access token; none if empty.
        repository_type: model or dataset.
    """

    def __init__(self, *, endpoint: str, token: str, repository_type: str = "model") -> None:
        self._token = token
        self._type = repository_type
        self._api = _client(endpoint, token)

    def list_files(self, repository: str, revision: str) -> Listing:
        """Resolve a revision to its commit and list its files.

        Raises:
            ProgramFailure: RepositoryNotFound, RevisionNotFound, GatedModel, Unauthorized or HubUnreachable.
        """
        with _hub_errors(repository, revision, has_token=bool(self._token)):
            commit = str(self._api.repo_info(repository, revision=revision, repo_type=self._type).sha)
            tree = self._api.list_repo_tree(repository, revision=commit, recursive=True, repo_type=self._type)
            entries = list(tree)
        # folders have no size
        files = [HubFile(entry.path, entry.size, _sha256(entry.lfs)) for entry in entries if hasattr(entry, "size")]
        return Listing(commit, tuple(files))

    def download(self, repository: str, listing: Listing, directory: Path) -> None:
        """Download a listing's files, going on where an earlier attempt stopped.

        Raises:
            ProgramFailure: as list_files; or ChecksumMismatch.
        """
        patterns = [glob.escape(file.path) for file in listing.files]
        with _hub_errors(repository, listing.commit, has_token=bool(self._token)):
            self._api.snapshot_download(
                repository,
                revision=listing.commit,
                local_dir=str(directory),
                allow_patterns=patterns,
                repo_type=self._type,
            )


def chosen_files(listing: Listing, *, allow: Sequence[str], ignore: Sequence[str]) -> Listing:
    """The files of a listing that are asked for; without a word those that a runtime reads.

    Args:
        allow: shell patterns; what one of them matches is fetched, whatever its kind.
        ignore: shell patterns of files that are left out.

    Raises:
        ProgramFailure: NothingToFetch, no file is left.
    """
    files = [file for file in listing.files if _matches(file, allow)] if allow else [*wanted_files(listing.files)]
    left = tuple(file for file in files if not _matches(file, ignore))
    if left:
        return replace(listing, files=left)
    raise ProgramFailure(
        "NothingToFetch",
        f"of {len(listing.files)} files none is left by allowPatterns {list(allow)} and ignorePatterns {list(ignore)}: "
        "name patterns that match the repository's files",
    )


def _matches(file: HubFile, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatch(file.path, pattern) for pattern in patterns)


def wanted_files(files: Iterable[HubFile]) -> Iterator[HubFile]:
    """The files that a runtime reads: no weights twice, in another framework's format or in the original one."""
    present = list(files)
    safetensors = {file.path for file in present if file.path.endswith(".safetensors")}
    usual = any(not Path(path).name.startswith("consolidated") for path in safetensors)
    for file in present:
        name = Path(file.path).name
        is_foreign = any(fnmatch.fnmatch(file.path, pattern) for pattern in _NEVER_FETCHED)
        is_twin = bool(safetensors) and file.path.endswith((".bin", ".bin.index.json"))
        is_consolidated = usual and name.startswith("consolidated")
        if not (is_foreign or is_twin or is_consolidated):
            yield file


def _client(endpoint: str, token: str) -> Any:
    # read by the client when it is imported: the image may be set to serve offline, or for a transfer it doesn't have
    os.environ.update({"HF_HUB_OFFLINE": "0", "HF_HUB_ENABLE_HF_TRANSFER": "0", "HF_HUB_DISABLE_TELEMETRY": "1"})
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ["HF_HOME"] = tempfile.mkdtemp(prefix="huggingface-")
    try:
        from huggingface_hub import HfApi  # noqa: PLC0415 - of the image, and slow to import
    except ImportError as error:
        raise ProgramFailure(
            "HubClientMissing", f"the image holds no huggingface_hub ({error}); choose an image that does"
        ) from error
    return HfApi(endpoint=endpoint or None, token=token or False)


def _sha256(large_file: Any) -> str:
    # an object in newer clients, a dictionary in older ones
    found = large_file.get("sha256") if isinstance(large_file, Mapping) else getattr(large_file, "sha256", None)
    return found if isinstance(found, str) else ""


@contextmanager
def _hub_errors(repository: str, revision: str, *, has_token: bool) -> Iterator[None]:
    # the classes moved between the client's versions, their names didn't
    try:
        yield
    except (ProgramFailure, Interrupted):
        raise
    except Exception as error:
        failure = _classify(error, repository, revision, has_token=has_token)
        if failure is None:
            raise
        raise failure from error


def _classify(error: Exception, repository: str, revision: str, *, has_token: bool) -> ProgramFailure | None:
    causes = list(_causes(error))
    names = {kind.__name__ for cause in causes for kind in type(cause).__mro__}
    status = next((found for found in map(_status, causes) if found), 0)
    if "GatedRepoError" in names or status in (401, 403):
        is_gated = "GatedRepoError" in names or status == 403
        return _gated(repository, has_token=has_token) if is_gated else _unauthorized(repository, has_token=has_token)
    if "RevisionNotFoundError" in names:
        return ProgramFailure("RevisionNotFound", f"{repository} has no branch, tag or commit {revision!r}")
    if "RepositoryNotFoundError" in names or "HFValidationError" in names:
        return ProgramFailure("RepositoryNotFound", f"the hub has no model repository {repository!r}")
    return _passing(error, repository, status=status, names=names)


def _passing(error: Exception, repository: str, *, status: int, names: set[str]) -> ProgramFailure | None:
    if "FileMetadataError" in names or "Consistency check failed" in str(error):
        return ProgramFailure(
            "ChecksumMismatch", f"a file of {repository} came broken: {_short(error)}", terminal=False
        )
    if status == 429 or status >= 500 or names & _UNREACHABLE:
        return ProgramFailure("HubUnreachable", f"the hub can't be reached: {_short(error)}", terminal=False)
    return None


def _gated(repository: str, *, has_token: bool) -> ProgramFailure:
    return ProgramFailure(
        "GatedModel",
        f"{repository} is gated: accept its licence on the hub with the account that the token belongs to, "
        + ("then retry" if has_token else "and name the token's Secret in tokenSecretRef"),
    )


def _unauthorized(repository: str, *, has_token: bool) -> ProgramFailure:
    if has_token:
        return ProgramFailure(
            "Unauthorized",
            f"the hub refuses the token for {repository}; put a valid one into the Secret of tokenSecretRef",
        )
    return ProgramFailure(
        "RepositoryNotFound",
        f"the hub has no public model repository {repository!r}: check its name, or, if it is private or gated, name "
        "the token's Secret in tokenSecretRef",
    )


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def _status(error: BaseException) -> int:
    status = getattr(getattr(error, "response", None), "status_code", 0)
    return status if isinstance(status, int) else 0


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:400]

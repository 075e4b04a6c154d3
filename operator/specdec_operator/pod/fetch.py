"""Download a repository into the store, pinned to its commit; a model is published with its facts."""

import dataclasses
import os
import shutil
import sys
from pathlib import Path, PurePosixPath
from typing import Any

from specdec_operator.pod.errors import ProgramFailure
from specdec_operator.pod.hub import Hub, HubFile, Listing, chosen_files
from specdec_operator.pod.inputs import FetchInput
from specdec_operator.pod.manifest import Manifest, describe, file_sha256
from specdec_operator.pod.model_facts import read_facts
from specdec_operator.pod.paths import inside
from specdec_operator.pod.program import run
from specdec_operator.pod.store import probe, publish, published, require_free, store_errors

MODEL = "Model"
_MODELS = "models"
_COMMIT_MARK = ".specdec-commit"


def fetch(given: FetchInput) -> dict[str, Any]:
    """Fetch the model or data set, or reuse it without network if it is already published.

    Returns:
        `reused`, and `facts` of a model or `dataSet` of texts, each with the resolved commit.

    Raises:
        ProgramFailure: the hub, the store or the model is in the way.
    """
    store = Path(given.store)
    target = inside(store, given.directory)
    present = published(target, kind=given.content)
    if present is not None and ("facts" in present.origin or given.content != MODEL):
        return _result(present, reused=True)
    probe(store)
    kind = "model" if given.content == MODEL else "dataset"
    hub = Hub(endpoint=given.endpoint, token=os.environ.get("HF_TOKEN", "").strip(), repository_type=kind)
    found = hub.list_files(given.repository, given.revision)
    listing = chosen_files(found, allow=given.allow_patterns, ignore=given.ignore_patterns)
    print(f"{given.repository}@{listing.commit}: {len(listing.files)} files, {_total(listing)} bytes", flush=True)
    partial = inside(store, f"partial/{_partial_name(given.directory)}")
    with store_errors(store):
        _prepare(partial, listing.commit)
        for file in listing.files:
            inside(partial, file.path)
        require_free(store, max(0, _total(listing) - _bytes_below(partial)))
        hub.download(given.repository, listing, partial)
        verify(partial, listing.files)
        manifest = _publish(given, listing, partial=partial, target=target)
    return _result(manifest, reused=False)


def verify(directory: Path, files: tuple[HubFile, ...]) -> None:
    """Compare what was downloaded with what the hub promised; a wrong file is removed, so that a retry fetches it.

    Raises:
        ProgramFailure: ChecksumMismatch, or PathOutsideStore of a file that would lie elsewhere.
    """
    wrong = [file.path for file in files if not _is_right(inside(directory, file.path), file)]
    for path in wrong:
        inside(directory, path).unlink(missing_ok=True)
    if wrong:
        raise ProgramFailure(
            "ChecksumMismatch",
            f"{', '.join(wrong[:4])} came broken from the hub; the next attempt fetches it again",
            terminal=False,
        )


def _partial_name(directory: str) -> str:
    """One name for each directory: its last part may be another one's too, as data sets' are named by repository."""
    return "+".join(PurePosixPath(directory).parts).removeprefix(f"{_MODELS}+")


def _publish(given: FetchInput, listing: Listing, *, partial: Path, target: Path) -> Manifest:
    # the client's own bookkeeping and our mark are no part of the model
    shutil.rmtree(partial / ".cache", ignore_errors=True)
    (partial / _COMMIT_MARK).unlink(missing_ok=True)
    facts = {"facts": read_facts(partial, commit=listing.commit).to_wire()} if given.content == MODEL else {}
    origin = {"repository": given.repository, "commit": listing.commit, **facts}
    described = describe(partial, kind=given.content, origin=origin, hashed=False)
    promised = {file.path: file.sha256 for file in listing.files}
    files = tuple(dataclasses.replace(file, sha256=promised.get(file.path, "")) for file in described.files)
    return publish(partial, target, dataclasses.replace(described, files=files))


def _result(manifest: Manifest, *, reused: bool) -> dict[str, Any]:
    if manifest.kind == MODEL:
        return {"facts": manifest.origin["facts"], "reused": reused}
    digest = manifest.digest()
    found = {"commit": manifest.origin["commit"], "contentDigest": digest}
    return {"dataSet": found, "digest": digest, "reused": reused}


def _prepare(partial: Path, commit: str) -> None:
    mark = partial / _COMMIT_MARK
    if partial.exists() and not (mark.is_file() and mark.read_text(encoding="ascii") == commit):
        shutil.rmtree(partial)
    partial.mkdir(parents=True, exist_ok=True)
    mark.write_text(commit, encoding="ascii")


def _is_right(path: Path, file: HubFile) -> bool:
    if not path.is_file() or (file.size and path.stat().st_size != file.size):
        return False
    return not file.sha256 or file_sha256(path) == file.sha256


def _total(listing: Listing) -> int:
    return sum(file.size for file in listing.files)


def _bytes_below(directory: Path) -> int:
    # what lies here is room that was already taken; sparse files count only what they hold
    return sum(path.stat().st_blocks * 512 for path in directory.rglob("*") if path.is_file())


if __name__ == "__main__":
    sys.exit(run(FetchInput, fetch))

"""What the real client of the public hub gets from this one."""

import hashlib
from pathlib import Path
from typing import Literal

import pytest
from huggingface_hub import HfApi, constants, snapshot_download
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from testbed.hub.server import REPOSITORIES_FILE, Hub

TARGET = "specdec-testbed/tiny-llama"
GATED = "specdec-testbed/tiny-llama-gated"
SERVED = REPOSITORIES_FILE.parent / "models" / "specdec-testbed" / "tiny-llama"
WEIGHTS = "model.safetensors"


def download(
    hub: Hub, folder: Path, repository: str, *, revision: str | None = None, token: str | bool = False
) -> Path:
    return Path(
        snapshot_download(
            repository,
            revision=revision,
            cache_dir=folder,
            endpoint=hub.url,
            token=token,
            max_workers=2,
        )
    )


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def test_a_whole_repository_arrives_byte_for_byte(hub: Hub, folder: Path) -> None:
    snapshot = download(hub, folder, TARGET)
    served = {path.name: digest(path) for path in SERVED.iterdir()}
    assert {path.name: digest(path) for path in snapshot.iterdir()} == served


def test_a_snapshot_is_named_by_the_commit_that_main_points_at(hub: Hub, folder: Path) -> None:
    assert download(hub, folder, TARGET).name == hub.repository(TARGET).names["main"]


def test_a_tag_brings_its_own_commit(hub: Hub, folder: Path) -> None:
    snapshot = download(hub, folder, TARGET, revision="v1.0")
    assert (snapshot.name, (snapshot / "README.md").exists()) == (hub.repository(TARGET).names["v1.0"], False)


def test_a_pinned_commit_stays_after_main_has_moved(hub: Hub, folder: Path) -> None:
    pinned = hub.repository(TARGET).names["main"]
    hub.repository(TARGET).point("main", "v1.0")
    assert (download(hub, folder, TARGET, revision=pinned) / "README.md").exists()


def test_main_brings_the_new_commit_after_it_has_moved(hub: Hub, folder: Path) -> None:
    hub.repository(TARGET).point("main", "v1.0")
    assert download(hub, folder, TARGET).name == hub.repository(TARGET).names["v1.0"]


def test_a_second_download_fetches_no_file_again(hub: Hub, folder: Path) -> None:
    download(hub, folder, TARGET)
    fetched = hub.traffic.count("GET", "/resolve/")
    download(hub, folder, TARGET)
    assert hub.traffic.count("GET", "/resolve/") == fetched


def test_a_gated_repository_needs_a_token(hub: Hub, folder: Path) -> None:
    with pytest.raises(GatedRepoError) as refused:
        download(hub, folder, GATED)
    assert refused.value.response.status_code == 401


def test_a_gated_repository_refuses_a_user_that_was_not_accepted(hub: Hub, folder: Path) -> None:
    with pytest.raises(GatedRepoError) as refused:
        download(hub, folder, GATED, token="hf_testbed_not_granted")
    assert refused.value.response.status_code == 403


def test_a_gated_repository_opens_to_an_accepted_user(hub: Hub, folder: Path) -> None:
    assert (download(hub, folder, GATED, token="hf_testbed_granted") / WEIGHTS).exists()


def test_an_unknown_token_is_refused_as_invalid_credentials(hub: Hub, folder: Path) -> None:
    with pytest.raises(HfHubHTTPError, match="Invalid credentials") as refused:
        download(hub, folder, TARGET, token="hf_nobody")
    assert refused.value.response.status_code == 401


@pytest.mark.parametrize("token", [False, "hf_testbed_granted"])
def test_a_missing_repository_is_told_as_one(hub: Hub, folder: Path, token: "str | Literal[False]") -> None:
    with pytest.raises(RepositoryNotFoundError):
        download(hub, folder, "specdec-testbed/no-such-model", token=token)


@pytest.mark.parametrize("revision", ["v9", "0" * 40])
def test_a_missing_revision_is_told_as_one(hub: Hub, folder: Path, revision: str) -> None:
    with pytest.raises(RevisionNotFoundError):
        download(hub, folder, TARGET, revision=revision)


def test_a_dropped_transfer_is_resumed_from_where_it_broke(
    hub: Hub, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The client writes what it got in steps of this size, and resumes after the last whole one.
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 50_000)
    hub.faults.drop_after_bytes[WEIGHTS] = 100_000
    snapshot = download(hub, folder, TARGET)
    sent_again = [each for each in hub.traffic.ranges if each[0].endswith(WEIGHTS)]
    assert digest(snapshot / WEIGHTS) == digest(SERVED / WEIGHTS)
    assert [start for _, start in sent_again] == [0, 100_000]


def test_branches_and_tags_are_listed(hub: Hub) -> None:
    references = HfApi(endpoint=hub.url, token=False).list_repo_refs(TARGET)
    assert [each.name for each in (*references.branches, *references.tags)] == ["main", "v1.1", "v1.0"]


def test_a_token_tells_whose_it_is(hub: Hub) -> None:
    assert HfApi(endpoint=hub.url).whoami(token="hf_testbed_granted")["name"] == "granted"

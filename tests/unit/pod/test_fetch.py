"""Fetching a model: the real client against the testbed's hub."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import pytest

from specdec_operator.pod.errors import ProgramFailure
from specdec_operator.pod.fetch import fetch, verify
from specdec_operator.pod.hub import Hub as HubClient
from specdec_operator.pod.hub import HubFile, Listing
from specdec_operator.pod.inputs import FetchInput
from specdec_operator.pod.model_files import MANIFEST_NAME
from testbed.hub.server import Hub

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TINY = "specdec-testbed/tiny-llama"
GATED = "specdec-testbed/tiny-llama-gated"


@pytest.fixture(scope="module")
def hub() -> Iterator[Hub]:
    with Hub.from_file() as running:
        yield running


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("HF_HUB_OFFLINE", "HF_HUB_ENABLE_HF_TRANSFER", "HF_HUB_DISABLE_TELEMETRY", "HF_HOME", "HF_TOKEN"):
        monkeypatch.setenv(name, "")
    return tmp_path


def given(hub: Hub, store: Path, repository: str = TINY, revision: str = "main") -> FetchInput:
    return FetchInput(
        repository=repository, revision=revision, endpoint=hub.url, store=str(store), directory="models/key"
    )


def failure(asked: FetchInput) -> ProgramFailure:
    with pytest.raises(ProgramFailure) as caught:
        fetch(asked)
    return caught.value


def test_a_fetched_model_lies_in_the_store_with_its_manifest(hub: Hub, store: Path) -> None:
    fetch(given(hub, store))

    names = {path.name for path in (store / "models/key").iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json", MANIFEST_NAME} <= names


def data_set(hub: Hub, store: Path) -> FetchInput:
    return FetchInput(
        content="DataSet",
        repository=TINY,
        revision="main",
        endpoint=hub.url,
        store=str(store),
        directory="texts/key/tiny-llama",
        ignore_patterns=("config.json",),
    )


def test_a_data_set_is_known_by_its_commit_whether_it_is_fetched_or_found(hub: Hub, store: Path) -> None:
    fetched, found = (fetch(data_set(hub, store)) for _ in range(2))

    assert (fetched["reused"], found["reused"]) == (False, True)
    assert len(fetched["dataSet"]["commit"]) == 40
    assert found["dataSet"] == fetched["dataSet"]


def test_a_data_set_is_no_model(hub: Hub, store: Path) -> None:
    result = fetch(data_set(hub, store))

    assert result.keys() == {"dataSet", "digest", "reused"}
    assert (store / "texts/key/tiny-llama" / MANIFEST_NAME).is_file()


def test_a_data_set_is_asked_for_as_one(hub: Hub, store: Path) -> None:
    before = hub.traffic.count("GET", "/datasets/")
    fetch(data_set(hub, store))

    assert hub.traffic.count("GET", "/datasets/") > before


def test_a_data_set_is_fetched_once(hub: Hub, store: Path) -> None:
    first = fetch(data_set(hub, store))

    assert fetch(data_set(hub, store)) == {**first, "reused": True}


def test_nothing_of_the_download_is_left(hub: Hub, store: Path) -> None:
    fetch(given(hub, store))

    assert list((store / "partial").iterdir()) == []
    assert not [path for path in (store / "models/key").iterdir() if path.name.startswith(".")]


def test_the_facts_name_the_commit_that_the_revision_meant(hub: Hub, store: Path) -> None:
    facts = fetch(given(hub, store))["facts"]

    assert len(facts["commit"]) == 40
    pinned = FetchInput(**{**vars(given(hub, store, revision=facts["commit"])), "directory": "models/pinned"})
    assert fetch(pinned)["facts"] == facts


def test_a_fetched_model_is_reused_without_the_hub(hub: Hub, store: Path) -> None:
    first = fetch(given(hub, store))
    offline = FetchInput(**{**vars(given(hub, store)), "endpoint": "http://127.0.0.1:9"})

    assert fetch(offline) == {**first, "reused": True}


def test_a_damaged_model_is_fetched_again(hub: Hub, store: Path) -> None:
    fetch(given(hub, store))
    (store / "models/key/model.safetensors").write_bytes(b"cut")

    assert fetch(given(hub, store))["reused"] is False


def test_a_download_goes_on_where_it_stopped(hub: Hub, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_directory: Path, _files: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("specdec_operator.pod.fetch.verify", interrupted)
        with pytest.raises(KeyboardInterrupt):
            fetch(given(hub, store))
    kept = (store / "partial/key/model.safetensors").stat().st_ino
    fetch(given(hub, store))

    assert (store / "models/key/model.safetensors").stat().st_ino == kept


def test_data_sets_of_one_name_have_downloads_of_their_own(
    hub: Hub, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_directory: Path, _files: object) -> None:
        raise KeyboardInterrupt

    first, second = (
        FetchInput(**{**vars(data_set(hub, store)), "directory": f"texts/{key}/tiny-llama"}) for key in ("one", "two")
    )
    with monkeypatch.context() as patch:
        patch.setattr("specdec_operator.pod.fetch.verify", interrupted)
        with pytest.raises(KeyboardInterrupt):
            fetch(first)
    (half,) = (store / "partial").iterdir()
    fetch(second)

    assert (half / "tokenizer.json").is_file()
    assert fetch(first)["reused"] is False


@pytest.mark.parametrize("path", ["../elsewhere.json", "/etc/cron.d/job", "a/../../../b", ".."])
def test_a_file_that_a_hub_names_outside_of_the_directory_is_never_touched(
    hub: Hub, store: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    victim = store / "partial" / "elsewhere.json"
    victim.parent.mkdir()
    victim.write_text("kept")
    listing = Listing("c" * 40, (HubFile("config.json", 2, ""), HubFile(path, 4, "0" * 64)))
    monkeypatch.setattr(HubClient, "list_files", lambda *_: listing)
    monkeypatch.setattr(HubClient, "download", lambda *_: pytest.fail("the download started"))

    failed = failure(FetchInput(**{**vars(given(hub, store)), "allow_patterns": ("*",)}))

    assert (failed.reason, failed.terminal, victim.read_text()) == ("PathOutsideStore", True, "kept")


def test_a_link_that_leads_outside_is_neither_read_nor_removed(tmp_path: Path) -> None:
    directory, outside = tmp_path / "model", tmp_path / "outside.bin"
    directory.mkdir()
    outside.write_bytes(b"y")
    (directory / "weights.bin").symlink_to(outside)

    with pytest.raises(ProgramFailure) as caught:
        verify(directory, (HubFile("weights.bin", 1, hashlib.sha256(b"x").hexdigest()),))
    assert (caught.value.reason, outside.exists()) == ("PathOutsideStore", True)


def test_a_partial_download_of_another_commit_is_thrown_away(hub: Hub, store: Path) -> None:
    partial = store / "partial/key"
    partial.mkdir(parents=True)
    (partial / "stray.json").write_text("{}")
    fetch(given(hub, store))

    assert not (store / "models/key/stray.json").exists()


def test_a_missing_repository_may_also_be_private(hub: Hub, store: Path) -> None:
    failed = failure(given(hub, store, "specdec-testbed/nowhere"))

    assert (failed.reason, failed.terminal) == ("RepositoryNotFound", True)
    assert "private or gated" in failed.message


def test_a_missing_repository_is_certain_with_a_token(hub: Hub, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_testbed_granted")

    assert "private" not in failure(given(hub, store, "specdec-testbed/nowhere")).message


def test_a_missing_revision_is_named(hub: Hub, store: Path) -> None:
    assert failure(given(hub, store, revision="v9")).reason == "RevisionNotFound"


@pytest.mark.parametrize(
    ("token", "reason"),
    [("", "GatedModel"), ("hf_testbed_not_granted", "GatedModel"), ("hf_wrong", "Unauthorized")],
)
def test_a_gated_model_asks_for_what_is_missing(
    hub: Hub, store: Path, monkeypatch: pytest.MonkeyPatch, token: str, reason: str
) -> None:
    monkeypatch.setenv("HF_TOKEN", token)
    failed = failure(given(hub, store, GATED))

    assert (failed.reason, failed.terminal) == (reason, True)


def test_a_gated_model_is_fetched_with_a_granted_token(hub: Hub, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_testbed_granted\n")

    assert fetch(given(hub, store, GATED))["facts"]["architecture"] == "LlamaForCausalLM"


def test_a_hub_out_of_reach_may_be_retried(hub: Hub, store: Path) -> None:
    failed = failure(FetchInput(**{**vars(given(hub, store)), "endpoint": "http://127.0.0.1:9"}))

    assert (failed.reason, failed.terminal) == ("HubUnreachable", False)


@pytest.mark.parametrize(
    ("status", "reason"), [(429, "HubUnreachable"), (503, "HubUnreachable"), (403, "GatedModel"), (401, "Unauthorized")]
)
def test_a_hubs_status_is_classed_whatever_the_clients_version(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, status: int, reason: str
) -> None:
    client = HubClient(endpoint=hub.url, token="hf_x")
    monkeypatch.setattr(client, "_api", _Refusing(status))

    with pytest.raises(ProgramFailure) as caught:
        client.list_files(TINY, "main")
    assert caught.value.reason == reason


def test_a_store_without_room_is_refused_before_the_download(
    hub: Hub, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def downloaded(*_arguments: Any) -> None:
        pytest.fail("the download started")

    monkeypatch.setattr("specdec_operator.pod.fetch._bytes_below", lambda _directory: -(2**60))
    monkeypatch.setattr(HubClient, "download", downloaded)

    assert failure(given(hub, store)).reason == "StoreFull"


def test_a_file_that_came_broken_is_removed_for_the_retry(tmp_path: Path) -> None:
    (tmp_path / "good").write_bytes(b"x")
    (tmp_path / "bad").write_bytes(b"y")
    digest = hashlib.sha256(b"x").hexdigest()

    with pytest.raises(ProgramFailure) as caught:
        verify(tmp_path, (HubFile("good", 1, digest), HubFile("bad", 1, digest)))
    assert (caught.value.reason, caught.value.terminal) == ("ChecksumMismatch", False)
    assert [path.name for path in tmp_path.iterdir()] == ["good"]


class _Refusing:
    """A client whose every call ends with an HTTP status."""

    def __init__(self, status: int) -> None:
        self.status = status

    def repo_info(self, *_arguments: Any, **_keywords: Any) -> None:
        error = RuntimeError("refused")
        error.response = self  # type: ignore[attr-defined] # as both HTTP libraries do
        raise error

    @property
    def status_code(self) -> int:
        return self.status

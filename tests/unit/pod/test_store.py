"""The store, and publishing in it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from specdec_operator.pod.errors import ProgramFailure
from specdec_operator.pod.manifest import Manifest, describe
from specdec_operator.pod.model_files import MANIFEST_NAME
from specdec_operator.pod.paths import inside
from specdec_operator.pod.store import probe, publish, published, require_free, store_errors


def made(directory: Path, content: str = "content") -> tuple[Path, Manifest]:
    directory.mkdir(parents=True)
    (directory / "file").write_text(content)
    return directory, describe(directory, kind="Engine", origin={}, hashed=True)


def test_a_published_directory_is_whole(tmp_path: Path) -> None:
    scratch, manifest = made(tmp_path / "scratch")
    publish(scratch, tmp_path / "engines" / "x", manifest)

    assert published(tmp_path / "engines" / "x", kind="Engine") == manifest


def test_publishing_takes_the_scratch_folder_away(tmp_path: Path) -> None:
    scratch, manifest = made(tmp_path / "scratch")
    publish(scratch, tmp_path / "target", manifest)

    assert not scratch.exists()


def test_the_first_to_publish_wins(tmp_path: Path) -> None:
    target = tmp_path / "target"
    first = publish(*_to(target, made(tmp_path / "one", "first")))
    second = publish(*_to(target, made(tmp_path / "two", "second")))

    assert (second, (target / "file").read_text()) == (first, "first")


def test_the_loser_of_a_race_for_the_rename_takes_the_winners_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "target"
    winner = made(tmp_path / "winner", "winner")
    rename = Path.rename

    def late(self: Path, to: Path) -> Path:
        monkeypatch.setattr(Path, "rename", rename)
        publish(winner[0], target, winner[1])
        return rename(self, to)

    monkeypatch.setattr(Path, "rename", late)
    scratch, manifest = made(tmp_path / "loser", "loser")

    assert publish(scratch, target, manifest) == winner[1]


def test_what_lies_there_without_a_manifest_is_replaced(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (target / "rest").touch()
    publish(*_to(target, made(tmp_path / "scratch")))

    assert sorted(path.name for path in target.iterdir()) == ["file", MANIFEST_NAME]


def test_a_damaged_directory_counts_as_not_published(tmp_path: Path) -> None:
    target = tmp_path / "target"
    publish(*_to(target, made(tmp_path / "scratch")))
    (target / "file").write_text("much longer than before")

    assert published(target, kind="Engine") is None


def test_a_directory_of_another_kind_counts_as_not_published(tmp_path: Path) -> None:
    publish(*_to(tmp_path / "target", made(tmp_path / "scratch")))

    assert published(tmp_path / "target", kind="Model") is None


def test_a_probe_leaves_nothing(tmp_path: Path) -> None:
    probe(tmp_path)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (errno.EXDEV, "StoreUnsuitable"),
        (errno.ENOSYS, "StoreUnsuitable"),
        (errno.EACCES, "StoreNotWritable"),
        (errno.EROFS, "StoreNotWritable"),
        (errno.ENOSPC, "StoreFull"),
    ],
)
def test_a_store_that_cannot_rename_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, reason: str
) -> None:
    def refuse(_self: Path, _to: Path) -> Path:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "rename", refuse)

    with pytest.raises(ProgramFailure) as caught:
        probe(tmp_path)
    assert caught.value.reason == reason


def test_a_store_that_is_not_there_is_an_ordinary_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), store_errors(tmp_path):
        (tmp_path / "no").read_text()


def test_a_full_store_says_what_it_needs_and_has(tmp_path: Path) -> None:
    with pytest.raises(ProgramFailure, match=r"needs 1048576\.0 GiB more, it has .* free") as caught:
        require_free(tmp_path, 2**50)
    assert caught.value.reason == "StoreFull"


@pytest.mark.parametrize("path", ["/etc", "../x", "a/../../x", "", "."])
def test_a_path_cannot_leave_the_store(tmp_path: Path, path: str) -> None:
    with pytest.raises(ProgramFailure, match="relative path") as caught:
        inside(tmp_path, path)
    assert caught.value.reason == "PathOutsideStore"


def test_a_symbolic_link_cannot_leave_the_store(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "link").symlink_to(tmp_path)

    with pytest.raises(ProgramFailure, match="symbolic link"):
        inside(tmp_path / "store", "link/x")


def _to(target: Path, made_directory: tuple[Path, Manifest]) -> tuple[Path, Path, Manifest]:
    return made_directory[0], target, made_directory[1]

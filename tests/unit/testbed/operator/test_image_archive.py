from __future__ import annotations

import json
import tarfile
from hashlib import sha256
from typing import TYPE_CHECKING

import pytest

from testbed.operator.image_archive import image_digest, write_archive

if TYPE_CHECKING:
    from pathlib import Path

REFERENCE = "specdec.dev/testbed/specdec-operator:1"


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """The archive of an image of one layer, beside which something else lies."""
    image = tmp_path / "image"
    image.mkdir()
    (image / "version").touch()
    digests = [blob(image, content) for content in (b"config", b"layer")]
    manifest = {"config": {"digest": digests[0]}, "layers": [{"digest": digests[1]}]}
    (image / "manifest.json").write_text(json.dumps(manifest))
    write_archive(image, tmp_path / "image.tar", reference=REFERENCE)
    return tmp_path / "image.tar"


def blob(image: Path, content: bytes) -> str:
    name = sha256(content).hexdigest()
    (image / name).write_bytes(content)
    return f"sha256:{name}"


def test_an_archive_names_its_image_for_each_kind_of_importer(archive: Path) -> None:
    with tarfile.open(archive) as tar:
        member = tar.extractfile("index.json")
        assert member is not None
        (manifest,) = json.load(member)["manifests"]
    assert manifest["annotations"] == {
        "io.containerd.image.name": REFERENCE,
        "org.opencontainers.image.ref.name": REFERENCE,
    }


def test_an_archive_holds_what_its_image_is_made_of_and_nothing_else(archive: Path) -> None:
    wanted = {sha256(content).hexdigest() for content in (b"config", b"layer")}
    with tarfile.open(archive) as tar:
        blobs = {name.rpartition("/")[2] for name in tar.getnames() if name.startswith("blobs/")}
    assert blobs == wanted | {image_digest(archive).removeprefix("sha256:")}


def test_every_blob_has_the_content_of_its_digest(archive: Path) -> None:
    with tarfile.open(archive) as tar:
        for member in tar.getmembers():
            if member.name.startswith("blobs/"):
                content = tar.extractfile(member)
                assert content is not None
                assert sha256(content.read()).hexdigest() == member.name.rpartition("/")[2]

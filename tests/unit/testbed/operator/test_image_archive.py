from __future__ import annotations

import json
import tarfile
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest

from testbed.operator.image_archive import image_digest, write_archive

if TYPE_CHECKING:
    from pathlib import Path

REFERENCE = "specdec.dev/testbed/specdec-operator:1"


@pytest.fixture
def layout(tmp_path: Path) -> Path:
    """An OCI layout that an older build's image is left in."""
    layout = tmp_path / "layout"
    (layout / "blobs" / "sha256").mkdir(parents=True)
    (layout / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    images = [image(layout, reference=f"old-{number}", content=b"old") for number in range(2)]
    images.append(image(layout, reference=REFERENCE, content=b"new"))
    (layout / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": images}))
    return layout


def image(layout: Path, *, reference: str, content: bytes) -> dict[str, Any]:
    config, layer = blob(layout, content + b" config"), blob(layout, content)
    manifest = blob(layout, json.dumps({"config": {"digest": config}, "layers": [{"digest": layer}]}).encode())
    return {"digest": manifest, "annotations": {"org.opencontainers.image.ref.name": reference}}


def blob(layout: Path, content: bytes) -> str:
    name = sha256(content).hexdigest()
    (layout / "blobs" / "sha256" / name).write_bytes(content)
    return f"sha256:{name}"


def test_an_archive_names_its_image_for_each_kind_of_importer(layout: Path, tmp_path: Path) -> None:
    write_archive(layout, tmp_path / "image.tar", reference=REFERENCE)
    with tarfile.open(tmp_path / "image.tar") as archive:
        member = archive.extractfile("index.json")
        assert member is not None
        (manifest,) = json.load(member)["manifests"]
    assert set(manifest["annotations"].values()) == {REFERENCE}
    assert "io.containerd.image.name" in manifest["annotations"]


def test_an_archive_holds_what_its_image_is_made_of_and_nothing_else(layout: Path, tmp_path: Path) -> None:
    write_archive(layout, tmp_path / "image.tar", reference=REFERENCE)
    wanted = {sha256(content).hexdigest() for content in (b"new", b"new config")}
    with tarfile.open(tmp_path / "image.tar") as archive:
        blobs = {name.rpartition("/")[2] for name in archive.getnames() if name.startswith("blobs/")}
    assert blobs == wanted | {image_digest(tmp_path / "image.tar").removeprefix("sha256:")}


def test_blobs_of_older_images_leave_the_layout(layout: Path, tmp_path: Path) -> None:
    write_archive(layout, tmp_path / "image.tar", reference=REFERENCE)
    assert not (layout / "blobs" / "sha256" / sha256(b"old").hexdigest()).exists()

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from typing import TYPE_CHECKING, Any

import pytest

from testbed.cluster.images import BUSYBOX_IMAGE, write_busybox_image

if TYPE_CHECKING:
    from pathlib import Path

Files = dict[str, bytes]


@pytest.fixture
def layout(tmp_path: Path) -> Files:
    busybox, archive = tmp_path / "busybox", tmp_path / "image.tar"
    busybox.write_bytes(b"a program")
    write_busybox_image(archive, busybox=busybox)
    with tarfile.open(archive) as tar:
        return {member.name: content.read() for member in tar if (content := tar.extractfile(member))}


def blob(layout: Files, descriptor: dict[str, Any]) -> bytes:
    return layout[f"blobs/{descriptor['digest'].replace(':', '/')}"]


def manifest(layout: Files) -> dict[str, Any]:
    (descriptor,) = json.loads(layout["index.json"])["manifests"]
    content: dict[str, Any] = json.loads(blob(layout, descriptor))
    return content


def test_every_blob_is_named_by_its_digest(layout: Files) -> None:
    blobs = {name: content for name, content in layout.items() if name.startswith("blobs/")}
    assert {f"blobs/sha256/{hashlib.sha256(content).hexdigest()}" for content in blobs.values()} == set(blobs)


def test_the_image_carries_its_name(layout: Files) -> None:
    (descriptor,) = json.loads(layout["index.json"])["manifests"]
    assert descriptor["annotations"]["org.opencontainers.image.ref.name"] == BUSYBOX_IMAGE


def test_sizes_are_those_of_the_blobs(layout: Files) -> None:
    descriptors = [manifest(layout)["config"], *manifest(layout)["layers"]]
    assert [len(blob(layout, descriptor)) for descriptor in descriptors] == [item["size"] for item in descriptors]


def test_the_layer_holds_busybox_and_a_shell(layout: Files) -> None:
    (layer,) = manifest(layout)["layers"]
    with tarfile.open(fileobj=io.BytesIO(blob(layout, layer))) as tar:
        program = tar.extractfile("bin/sh")
        assert program is not None
        assert program.read() == b"a program"

import hashlib
import json
import tarfile
from pathlib import Path

import pytest

from testbed.runtime.layer_tar import LayerFile, content_key, write_layer
from testbed.runtime.oci import ImageConfig, write_image


@pytest.fixture
def layer(tmp_path: Path) -> Path:
    source = tmp_path / "program"
    source.write_text("#!/bin/sh\n")
    write_layer(tmp_path / "layer.tar", [LayerFile("opt/program", source, executable=True)])
    return tmp_path / "layer.tar"


@pytest.fixture
def archive(layer: Path, tmp_path: Path) -> Path:
    config = ImageConfig("example.org/image:1", entrypoint=("/opt/program",), environment=(("A", "b"),))
    write_image(tmp_path / "image.tar", config, (layer,))
    return tmp_path / "image.tar"


def read(archive: Path, name: str) -> bytes:
    with tarfile.open(archive) as opened:
        member = opened.extractfile(name)
        assert member is not None
        return member.read()


def test_the_index_names_the_image_for_containerd(archive: Path) -> None:
    manifest = json.loads(read(archive, "index.json"))["manifests"][0]
    assert manifest["annotations"]["io.containerd.image.name"] == "example.org/image:1"


def test_every_blob_is_named_by_its_own_hash(archive: Path) -> None:
    with tarfile.open(archive) as opened:
        blobs = [name for name in opened.getnames() if name.startswith("blobs/sha256/")]
    assert len(blobs) == 3
    assert all(hashlib.sha256(read(archive, name)).hexdigest() == name.rpartition("/")[2] for name in blobs)


def test_a_layer_keeps_the_execute_bit(layer: Path) -> None:
    with tarfile.open(layer) as opened:
        assert opened.getmember("opt/program").mode == 0o755


def test_a_layers_bytes_depend_on_nothing_but_its_files(layer: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.tar"
    write_layer(again, [LayerFile("opt/program", tmp_path / "program", executable=True)])
    assert again.read_bytes() == layer.read_bytes()


def test_the_content_key_follows_the_bytes(tmp_path: Path) -> None:
    file = tmp_path / "file"
    keys = []
    for content in ("one", "two"):
        file.write_text(content)
        keys.append(content_key([LayerFile("file", file)]))
    assert keys[0] != keys[1]

import json
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.runtime import base_layers, build
from testbed.runtime.build import BuiltImage, build_image
from testbed.runtime.bytecode import SIMULATOR
from testbed.runtime.image_config import played
from testbed.runtime.layer_tar import LayerFile, write_layer
from testbed.runtime.simulator.release import VLLM_IMAGE_REFERENCE


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / "model.py"
    file.write_text("answer = 1\n")
    return file


@pytest.fixture
def image(tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], tuple[BuiltImage, list[str]]]:
    """Builds with layers of one file each; returns the image and what the progress said."""

    def below(layers: Path, _progress: Callable[[str], None]) -> Path:
        layer = layers / "below.tar"
        write_layer(layer, [LayerFile("etc/below", Path(__file__))])
        return layer

    monkeypatch.setattr(base_layers, "debian_layer", below)
    monkeypatch.setattr(base_layers, "triton_layer", lambda layers, _debian, progress: below(layers, progress))
    monkeypatch.setattr(build, "_own_files", lambda _release: {"own": (LayerFile("app/model.py", source),)})

    def run() -> tuple[BuiltImage, list[str]]:
        said: list[str] = []
        return build_image(cache=tmp_path / "cache", progress=said.append), said

    return run


def test_nothing_is_written_again_when_nothing_changed(image: Callable[[], tuple[BuiltImage, list[str]]]) -> None:
    first, _ = image()
    second, said = image()
    assert second == first
    assert not [line for line in said if "writing" in line]


def test_a_changed_stand_in_makes_another_image(
    image: Callable[[], tuple[BuiltImage, list[str]]], source: Path
) -> None:
    first, _ = image()
    source.write_text("answer = 2\n")
    second, _ = image()
    assert second.digest != first.digest


def test_a_superseded_archive_is_removed(image: Callable[[], tuple[BuiltImage, list[str]]], source: Path) -> None:
    first, _ = image()
    source.write_text("answer = 2\n")
    image()
    assert not first.archive.exists()


def test_an_archive_without_its_record_is_written_again(image: Callable[[], tuple[BuiltImage, list[str]]]) -> None:
    first, _ = image()
    first.archive.with_suffix(".json").unlink()
    _, said = image()
    assert [line for line in said if "writing" in line]


def test_all_images_lie_in_one_archive_with_their_shared_layers_once(
    image: Callable[[], tuple[BuiltImage, list[str]]],
) -> None:
    built, _ = image()
    with tarfile.open(built.archive) as archive:
        index = archive.extractfile("index.json")
        assert index is not None
        named = [each["annotations"]["io.containerd.image.name"] for each in json.load(index)["manifests"]]
        blobs = [entry.name for entry in archive if entry.name.startswith("blobs/")]
    assert (named, len(blobs)) == (list(built.digests), len(set(blobs)))


def test_a_release_adds_its_own_files_to_its_flavours() -> None:
    newer = build._own_files(played("specdec.dev/testbed/tritonserver:26.04-trtllm-python-py3"))
    assert "usr/local/lib/python3.11/dist-packages/tensorrt_llm/llmapi/llm_args.py" in {
        file.path for file in newer["26.04-trtllm"]
    }


def test_an_image_with_vllm_holds_no_engine_backend() -> None:
    paths = {file.path for file in build._own_files(played(VLLM_IMAGE_REFERENCE))["vllm"]}
    assert {path.split("/")[3] for path in paths if path.startswith("opt/tritonserver/backends/")} == {"vllm"}


def test_every_image_says_which_versions_it_plays() -> None:
    assert build.image_environment(VLLM_IMAGE_REFERENCE)["SIMULATOR_VLLM_VERSION"] == "0.15.1"


def test_an_image_s_stand_ins_find_the_contracts_that_it_holds(tmp_path: Path) -> None:
    for file in build._packages():
        copy = tmp_path / file.path
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(file.source.read_bytes())
    program = (
        "from testbed.runtime.simulator.contracts import declared; print(*declared('engine/trtllm_build.yaml', {}))"
    )
    argv = [sys.executable, "-c", program]
    said = subprocess.run(argv, cwd=tmp_path / SIMULATOR, capture_output=True, check=True, text=True)

    assert said.stdout.split()[:2] == ["options", "switches"]

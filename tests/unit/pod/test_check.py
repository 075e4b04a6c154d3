"""What the serving container must find."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from specdec_operator.pod.check import check
from specdec_operator.pod.driver import DriverFloor
from specdec_operator.pod.errors import ProgramFailure
from specdec_operator.pod.gpu import product_label
from specdec_operator.pod.inputs import CheckInput, EngineExpectation
from specdec_operator.pod.manifest import describe
from specdec_operator.pod.model_files import MANIFEST_NAME
from specdec_operator.pod.prebuilt_engine import require_prebuilt
from specdec_operator.pod.store import publish
from tests.unit.pod.models import write_model
from tests.unit.pod.tools import Image, engine_config, publish_engine, write_engine

if TYPE_CHECKING:
    from pathlib import Path

H100 = "NVIDIA-H100-80GB-HBM3"


def reason(**given: Any) -> str:
    with pytest.raises(ProgramFailure) as caught:
        check(CheckInput(**given))
    return caught.value.reason


def test_a_fitting_container_is_reported(container: Image, tmp_path: Path) -> None:
    container.gpus(count=2)
    container.tensorrt_llm("1.1.0")
    digest = publish_engine(tmp_path / "e")
    expected = EngineExpectation(directory=str(tmp_path / "e"), ranks=1, digest=digest, logits_data_type="TYPE_FP32")

    result = check(
        CheckInput(
            gpus=2,
            gpu_product=H100,
            driver=DriverFloor(minimum="590.44"),
            tensorrt_llm_version="1.1.0",
            engines=(expected,),
            model_directories=(str(write_model(tmp_path / "m")),),
        )
    )
    assert (result["gpus"], result["driver"]) == ([H100, H100], "590.44.01")
    assert {"memlockBytes", "stackBytes", "sharedMemoryBytes"} <= set(result)


@pytest.mark.parametrize("version", ["0.13.0", "0.13.0+f2b0ff83.nv26.01"])
def test_the_vllm_of_nvidia_s_build_is_the_release_s(container: Image, version: str) -> None:
    container.vllm(version)

    assert check(CheckInput(gpus=0, vllm_version="0.13.0"))["gpus"] == []


def test_another_vllm_is_refused(container: Image) -> None:
    container.vllm("0.13.1")

    assert reason(gpus=0, vllm_version="0.13.0") == "VLLMVersionMismatch"


def test_an_image_without_vllm_is_refused(container: Image) -> None:
    assert container.directory.is_dir()
    assert reason(gpus=0, vllm_version="0.13.0") == "VLLMVersionMismatch"


@pytest.mark.parametrize("label", [H100, f"{H100}-SHARED", f"{H100}-MIG-1g.10gb"])
def test_labels_of_shared_and_mig_devices_are_their_gpus(container: Image, label: str) -> None:
    container.gpus()

    assert check(CheckInput(gpus=1, gpu_product=label))["gpus"] == [H100]


def test_another_product_is_refused(container: Image) -> None:
    container.gpus("NVIDIA A100-SXM4-80GB")

    assert reason(gpus=1, gpu_product=H100) == "EngineGpuMismatch"


def test_a_container_without_nvidia_smi_has_no_gpu(container: Image) -> None:
    container.program("nvidia-smi", "echo 'no devices were found' >&2; exit 6")

    assert reason(gpus=1) == "GpuMissing"


def test_too_few_gpus_are_missing(container: Image) -> None:
    container.gpus(count=1)

    assert reason(gpus=2) == "GpuMissing"


def test_mig_devices_count_as_gpus(container: Image) -> None:
    smi = (
        'if [ "$1" = -L ]; then printf "GPU 0: X (UUID: GPU-1)\\n  MIG 1g.10gb Device 0: (UUID: M-1)\\n'
        '  MIG 1g.10gb Device 1: (UUID: M-2)\\n"; else echo "X, 590.44.01"; fi'
    )
    container.program("nvidia-smi", smi)

    assert check(CheckInput(gpus=2))["driver"] == "590.44.01"


def test_a_plan_without_gpus_asks_for_none() -> None:
    assert check(CheckInput(gpus=0))["gpus"] == []


@pytest.mark.parametrize("driver", ["590.43.99", "580.105.08"])
def test_an_older_driver_is_refused(container: Image, driver: str) -> None:
    container.gpus(driver=driver)

    assert reason(gpus=1, driver=DriverFloor(minimum="590.44")) == "DriverTooOld"


def test_an_older_branch_runs_the_image_on_data_centre_gpus_alone(container: Image) -> None:
    floor = DriverFloor(minimum="580", data_center=("535.86",), source="the release notes")
    container.gpus("NVIDIA H100 80GB HBM3", driver="535.183.06")
    assert check(CheckInput(gpus=1, driver=floor))["driver"] == "535.183.06"

    container.gpus("NVIDIA GeForce RTX 4090", driver="535.183.06")
    assert reason(gpus=1, driver=floor) == "DriverTooOld"


def test_a_refused_driver_is_told_with_the_floor_its_class_its_source_and_what_to_do(container: Image) -> None:
    container.gpus("NVIDIA H100 80GB HBM3", driver="535.54.03")
    floor = DriverFloor(minimum="580", data_center=("535.86", "550"), source="the release notes")

    with pytest.raises(ProgramFailure) as caught:
        check(CheckInput(gpus=1, driver=floor))
    assert caught.value.message == (
        "the node's driver 535.54.03 is too old: NVIDIA-H100-80GB-HBM3, a data-centre GPU, needs 580 or newer, or "
        "535.86 or newer of R535, 550 or newer of R550 (source: the release notes); install a newer driver, name an "
        "older release in spec.runtime.release, or, if you know that this driver runs the image, say so in "
        "spec.runtime.minimumDriver"
    )


def test_another_tensorrt_llm_is_refused(container: Image) -> None:
    container.tensorrt_llm("1.2.1")

    assert reason(gpus=0, tensorrt_llm_version="1.1.0") == "TensorRTLLMVersionMismatch"


def test_an_engine_of_another_tensorrt_llm_is_refused(container: Image, tmp_path: Path) -> None:
    container.tensorrt_llm("1.1.0")
    publish_engine(tmp_path / "e", config=engine_config(version="1.0.0"))
    engines = (EngineExpectation(directory=str(tmp_path / "e"), ranks=1),)

    assert reason(gpus=0, tensorrt_llm_version="1.1.0", engines=engines) == "TensorRTLLMVersionMismatch"


def test_an_engine_with_other_logits_is_refused(tmp_path: Path) -> None:
    publish_engine(tmp_path / "e", config=engine_config(logits_data_type="float16"))
    engines = (EngineExpectation(directory=str(tmp_path / "e"), ranks=1, logits_data_type="TYPE_FP32"),)

    assert reason(gpus=0, engines=engines) == "LogitsTypeMismatch"


def test_an_engine_of_another_method_is_refused(tmp_path: Path) -> None:
    publish_engine(tmp_path / "e", config=engine_config(speculative_decoding_mode=1, max_draft_len=0))
    engines = (EngineExpectation(directory=str(tmp_path / "e"), ranks=1, speculative_mode="medusa", draft_tokens=63),)

    assert reason(gpus=0, engines=engines) == "EngineMismatch"


def test_a_prebuilt_engine_needs_no_manifest(tmp_path: Path) -> None:
    engine = write_engine(tmp_path / "e")
    digest = require_prebuilt(engine, ranks=1)
    engines = (EngineExpectation(directory=str(engine), ranks=1, digest=digest, prebuilt=True),)

    assert check(CheckInput(gpus=0, engines=engines))["gpus"] == []


def test_a_prebuilt_engine_that_changed_is_looked_at_again(tmp_path: Path) -> None:
    engine = write_engine(tmp_path / "e")
    digest = require_prebuilt(engine, ranks=1)
    (engine / "rank0.engine").write_text("another engine")
    engines = (EngineExpectation(directory=str(engine), ranks=1, digest=digest, prebuilt=True),)

    assert reason(gpus=0, engines=engines) == "EngineDamaged"


def test_an_engine_that_is_not_there_is_missing(tmp_path: Path) -> None:
    engines = (EngineExpectation(directory=str(tmp_path / "e"), ranks=1),)

    assert reason(gpus=0, engines=engines) == "EngineMissing"


def test_a_model_that_is_not_there_is_missing(tmp_path: Path) -> None:
    assert reason(gpus=0, model_directories=(str(tmp_path),)) == "ModelMissing"


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("NVIDIA H100 80GB HBM3", H100),
        ("NVIDIA A100-SXM4-80GB", "NVIDIA-A100-SXM4-80GB"),
        ("Tesla  T4", "Tesla-T4"),
        ("NVIDIA RTX 6000 Ada (R)", "NVIDIA-RTX-6000-Ada-R"),
    ],
)
def test_a_product_is_written_as_its_label(name: str, label: str) -> None:
    assert product_label(name) == label


def published_model(target: Path) -> Path:
    scratch = write_model(target.with_name("scratch"))
    publish(scratch, target, describe(scratch, kind="Model", origin={}, hashed=False))
    return target


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-10])


@pytest.mark.parametrize("file", ["model.safetensors", "tokenizer.json"])
def test_a_published_model_with_a_file_that_is_cut_is_damaged(tmp_path: Path, file: str) -> None:
    model = published_model(tmp_path / "model")
    cut(model / file)

    with pytest.raises(ProgramFailure, match=rf"{file} has \d+ bytes, published with \d+") as caught:
        check(CheckInput(gpus=0, model_directories=(str(model),)))

    assert (caught.value.reason, caught.value.terminal) == ("ModelDamaged", True)


def test_a_published_model_that_lost_a_file_is_damaged(tmp_path: Path) -> None:
    model = published_model(tmp_path / "model")
    (model / "model.safetensors").unlink()

    assert reason(gpus=0, model_directories=(str(model),)) == "ModelDamaged"


@pytest.mark.parametrize("manifest", ["", "[]", "{", "[" * 100_000, '{"files": [1]}'])
def test_a_model_whose_manifest_is_broken_is_missing(tmp_path: Path, manifest: str) -> None:
    model = published_model(tmp_path / "model")
    (model / MANIFEST_NAME).write_text(manifest)

    assert reason(gpus=0, model_directories=(str(model),)) == "ModelMissing"


def test_a_model_on_a_claim_whose_weights_are_cut_is_unreadable(tmp_path: Path) -> None:
    cut(write_model(tmp_path / "model") / "model.safetensors")

    assert reason(gpus=0, model_directories=(str(tmp_path / "model"),)) == "UnreadableModel"


def test_a_model_on_a_claim_that_engines_were_built_from_is_there_for_its_tokenizer(tmp_path: Path) -> None:
    (write_model(tmp_path / "model") / "model.safetensors").unlink()
    expected = EngineExpectation(directory=str(tmp_path / "e"), ranks=1, digest=publish_engine(tmp_path / "e"))

    check(CheckInput(gpus=0, engines=(expected,), model_directories=(str(tmp_path / "model"),)))

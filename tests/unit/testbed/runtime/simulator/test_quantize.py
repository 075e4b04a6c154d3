"""quantize.py: what it marks, and what it refuses."""

import json
from pathlib import Path
from typing import Any

import pytest

from testbed.runtime.inference.safetensors import read_tensors
from testbed.runtime.simulator.errors import CheckpointError
from testbed.runtime.simulator.quantize import quantize


@pytest.fixture
def arguments(models: Path, tmp_path: Path) -> list[str]:
    return ["--model_dir", str(models / "tiny-llama"), "--output_dir", str(tmp_path / "out")]


def written(tmp_path: Path) -> dict[str, Any]:
    return dict(json.loads((tmp_path / "out" / "config.json").read_text()))


@pytest.mark.parametrize(
    ("name", "algorithm"),
    [
        ("fp8", "FP8"),
        ("int8_sq", "W8A8_SQ_PER_CHANNEL"),
        ("int4_awq", "W4A16_AWQ"),
        ("w4a8_awq", "W4A8_AWQ"),
        ("int8_wo", "W8A16"),
        ("int4_wo", "W4A16"),
        ("full_prec", None),
    ],
)
def test_a_format_is_named_in_the_checkpoint(
    arguments: list[str], gpus: dict[str, str], tmp_path: Path, name: str, algorithm: str | None
) -> None:
    quantize([*arguments, "--qformat", name, "--kv_cache_dtype", "fp8", "--calib_size", "64"], gpus)
    assert written(tmp_path)["quantization"] == {"quant_algo": algorithm, "kv_cache_quant_algo": "FP8"}


def test_weights_stay_as_they_are_and_the_log_says_so(
    arguments: list[str], gpus: dict[str, str], tmp_path: Path, models: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    quantize([*arguments, "--qformat", "fp8"], gpus)
    before = read_tensors(models / "tiny-llama" / "model.safetensors")
    after = read_tensors(tmp_path / "out" / "rank0.safetensors")
    assert all((after[name] == before[name]).all() for name in before)
    assert "nothing is quantized, weights are unchanged" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flags", "product", "refusal"),
    [
        (["--qformat", "nvfp4"], "NVIDIA H100 80GB HBM3", r"nvfp4 needs compute capability 10\.0 \(Blackwell\)"),
        (["--qformat", "w4a8_awq"], "NVIDIA A100-SXM4-80GB", r"w4a8_awq needs compute capability 8\.9 or newer"),
        (["--kv_cache_dtype", "fp8"], "NVIDIA A100-SXM4-80GB", r"A100-SXM4-80GB has 8\.0"),
    ],
)
def test_a_format_that_the_gpu_lacks_is_refused(
    arguments: list[str], gpus: dict[str, str], flags: list[str], product: str, refusal: str
) -> None:
    with pytest.raises(CheckpointError, match=refusal):
        quantize([*arguments, *flags], gpus | {"SIMULATOR_GPU_PRODUCT": product})


def test_blackwell_takes_nvfp4(arguments: list[str], gpus: dict[str, str], tmp_path: Path) -> None:
    quantize([*arguments, "--qformat", "nvfp4"], gpus | {"SIMULATOR_GPU_PRODUCT": "NVIDIA B200"})
    assert written(tmp_path)["quantization"]["quant_algo"] == "NVFP4"


@pytest.mark.parametrize(
    ("flags", "refusal"),
    [
        (["--qformat", "fp4"], "--qformat fp4: is not one of"),
        (["--qformat", "fp8,int4_awq"], "several formats need --auto_quantize_bits"),
        (["--qformat", "fp8", "--calib_dataset", "/nowhere"], "--calib_dataset /nowhere: is not there"),
    ],
)
def test_flags_that_make_no_sense_are_refused(
    arguments: list[str], gpus: dict[str, str], flags: list[str], refusal: str
) -> None:
    with pytest.raises(CheckpointError, match=refusal):
        quantize([*arguments, *flags], gpus)


def test_formats_may_be_mixed_by_bits(arguments: list[str], gpus: dict[str, str], tmp_path: Path) -> None:
    quantize([*arguments, "--qformat", "fp8,int4_awq", "--auto_quantize_bits", "5.0"], gpus)
    assert written(tmp_path)["quantization"]["quant_algo"] == "MIXED_PRECISION"


def test_calibration_offline_needs_the_data_on_disk(arguments: list[str], gpus: dict[str, str], tmp_path: Path) -> None:
    offline = gpus | {"HF_HUB_OFFLINE": "1"}
    with pytest.raises(CheckpointError, match="HF_HUB_OFFLINE is set, and there is no such directory"):
        quantize([*arguments, "--qformat", "fp8"], offline)
    quantize([*arguments, "--qformat", "fp8", "--calib_dataset", str(tmp_path)], offline)


def test_formats_that_are_not_calibrated_need_no_data(arguments: list[str], gpus: dict[str, str]) -> None:
    quantize([*arguments, "--qformat", "int8_wo"], gpus | {"HF_HUB_OFFLINE": "1"})


def test_medusa_heads_are_added_on_the_way(
    models: Path, arguments: list[str], gpus: dict[str, str], tmp_path: Path
) -> None:
    heads = ["--medusa_model_dir", str(models / "tiny-llama-medusa"), "--num_medusa_heads", "3"]
    quantize([*arguments, "--qformat", "fp8", *heads], gpus)
    assert (written(tmp_path)["architecture"], written(tmp_path)["num_medusa_heads"]) == ("MedusaForCausalLM", 3)

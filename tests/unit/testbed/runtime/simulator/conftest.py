from pathlib import Path

import pytest

import testbed.hub
from testbed.runtime.simulator.convert_checkpoint import convert_checkpoint
from testbed.runtime.simulator.convert_eagle import convert_eagle
from testbed.runtime.simulator.convert_medusa import convert_medusa
from testbed.runtime.simulator.convert_redrafter import convert_redrafter
from testbed.runtime.simulator.trtllm_build import trtllm_build

GPUS = {"NVIDIA_VISIBLE_DEVICES": "all", "SIMULATOR_GPUS": "4", "SIMULATOR_GPU_PRODUCT": "NVIDIA H100 80GB HBM3"}


@pytest.fixture(scope="session")
def models() -> Path:
    return Path(testbed.hub.__file__).parent / "models" / "specdec-testbed"


@pytest.fixture(scope="session")
def gpus() -> dict[str, str]:
    return dict(GPUS)


@pytest.fixture(scope="session")
def checkpoint(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("checkpoint")
    convert_checkpoint(["--model_dir", str(models / "tiny-llama"), "--output_dir", str(output), "--tp_size", "2"], GPUS)
    return output


@pytest.fixture(scope="session")
def target_engine(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A target on two ranks that takes up to five draft tokens."""
    output = tmp_path_factory.mktemp("target")
    mode = ["--speculative_decoding_mode", "draft_tokens_external", "--max_draft_len", "5"]
    limits = ["--max_batch_size", "4", "--max_input_len", "64", "--max_seq_len", "128"]
    trtllm_build(["--checkpoint_dir", str(checkpoint), "--output_dir", str(output), *mode, *limits], GPUS)
    return output


def _build(checkpoint: Path, output: Path, mode: str, *flags: str) -> Path:
    limits = ["--max_batch_size", "4", "--max_input_len", "64", "--max_seq_len", "128"]
    paths = ["--checkpoint_dir", str(checkpoint), "--output_dir", str(output)]
    trtllm_build([*paths, "--speculative_decoding_mode", mode, *limits, *flags], GPUS)
    return output


@pytest.fixture(scope="session")
def eagle_engine(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("eagle")
    directories = ["--model_dir", str(models / "tiny-llama"), "--eagle_model_dir", str(models / "tiny-llama-eagle")]
    convert_eagle([*directories, "--output_dir", str(folder / "checkpoint"), "--tp_size", "2"], GPUS)
    return _build(folder / "checkpoint", folder / "engine", "eagle")


@pytest.fixture(scope="session")
def medusa_engine(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("medusa")
    directories = ["--model_dir", str(models / "tiny-llama"), "--medusa_model_dir", str(models / "tiny-llama-medusa")]
    convert_medusa([*directories, "--output_dir", str(folder / "checkpoint")], GPUS)
    return _build(folder / "checkpoint", folder / "engine", "medusa")


@pytest.fixture(scope="session")
def lookahead_engine(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built for lookahead up to (4, 3, 4)."""
    output = tmp_path_factory.mktemp("lookahead")
    return _build(checkpoint, output, "lookahead_decoding", "--max_draft_len", "15")


@pytest.fixture(scope="session")
def redrafter_engine(checkpoint: Path, models: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("redrafter")
    base = ["--base_model_checkpoint_dir", str(checkpoint), "--tp_size", "2"]
    drafter = ["--drafter_model_dir", str(models / "tiny-llama-redrafter"), "--redrafter_num_beams", "4"]
    convert_redrafter([*base, *drafter, "--output_dir", str(folder / "checkpoint")], GPUS)
    return _build(folder / "checkpoint", folder / "engine", "explicit_draft_tokens")

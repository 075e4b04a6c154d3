from pathlib import Path

import pytest

import testbed.hub
from testbed.runtime.simulator.convert_checkpoint import convert_checkpoint
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

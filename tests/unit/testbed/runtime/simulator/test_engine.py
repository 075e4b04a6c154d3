import shutil
from pathlib import Path

import pytest

from testbed.runtime.simulator.engine import check_rank, describe_engine, load_engine
from testbed.runtime.simulator.errors import EngineError

GPU = "NVIDIA H100 80GB HBM3"


@pytest.fixture
def copy(target_engine: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(target_engine, tmp_path / "engine"))


def test_the_ranks_files_together_make_the_model(target_engine: Path) -> None:
    assert load_engine(describe_engine(target_engine), gpu=GPU).config.vocab_size == 512


def test_no_single_rank_holds_the_whole_model(target_engine: Path) -> None:
    description = describe_engine(target_engine)
    first, second = (check_rank(description, rank, gpu=GPU) for rank in range(2))
    assert first
    assert not set(first) & set(second)


def test_a_missing_rank_file_is_refused(copy: Path) -> None:
    (copy / "rank1.engine").unlink()
    with pytest.raises(EngineError, match=r"Error opening engine file: .*rank1\.engine"):
        load_engine(describe_engine(copy), gpu=GPU)


def test_an_engine_of_another_gpu_is_refused(target_engine: Path) -> None:
    with pytest.raises(EngineError, match="was built for NVIDIA H100 80GB HBM3 and can't run on NVIDIA L40S"):
        load_engine(describe_engine(target_engine), gpu="NVIDIA L40S")


def test_an_engine_of_another_release_is_refused(copy: Path) -> None:
    file = copy / "rank0.engine"
    file.write_bytes(file.read_bytes().replace(b'"tensorrt_llm": "1.1.0"', b'"tensorrt_llm": "0.9.0"', 1))
    with pytest.raises(EngineError, match=r"expecting 1\.1\.0 got 0\.9\.0, please rebuild"):
        load_engine(describe_engine(copy), gpu=GPU)


def test_a_file_that_no_simulator_wrote_is_refused(copy: Path) -> None:
    (copy / "rank0.engine").write_bytes(b"ptrt\n{}\n")
    with pytest.raises(EngineError, match="only engines built in this image"):
        load_engine(describe_engine(copy), gpu=GPU)


def test_a_folder_without_config_json_is_no_engine(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"config\.json"):
        describe_engine(tmp_path)

import json
from pathlib import Path

import pytest

from testbed.runtime.simulator.convert_checkpoint import convert_checkpoint
from testbed.runtime.simulator.errors import CheckpointError, NoGPUError
from testbed.runtime.simulator.run_engine import run_engine
from testbed.runtime.simulator.tool_log import run_tool
from testbed.runtime.simulator.trtllm_build import trtllm_build

NO_GPU = {"NVIDIA_VISIBLE_DEVICES": "void"}


def test_an_engine_has_one_file_per_rank(target_engine: Path) -> None:
    assert sorted(file.name for file in target_engine.glob("*.engine")) == ["rank0.engine", "rank1.engine"]


def test_an_engine_says_what_it_was_built_for(target_engine: Path) -> None:
    build = json.loads((target_engine / "config.json").read_text())["build_config"]
    assert (build["max_draft_len"], build["speculative_decoding_mode"], build["max_seq_len"]) == (5, 2, 128)


def test_the_same_checkpoint_gives_the_same_bytes(checkpoint: Path, gpus: dict[str, str], tmp_path: Path) -> None:
    for name in ("first", "second"):
        trtllm_build(["--checkpoint_dir", str(checkpoint), "--output_dir", str(tmp_path / name)], gpus)
    first, second = ((tmp_path / name / "rank0.engine").read_bytes() for name in ("first", "second"))
    assert first == second


def test_a_checkpoint_knows_its_split(checkpoint: Path) -> None:
    assert json.loads((checkpoint / "config.json").read_text())["mapping"]["tp_size"] == 2


def test_heads_that_cannot_be_shared_evenly_are_refused(models: Path, gpus: dict[str, str], tmp_path: Path) -> None:
    arguments = ["--model_dir", str(models / "tiny-llama"), "--output_dir", str(tmp_path), "--tp_size", "3"]
    with pytest.raises(CheckpointError, match="not divisible by tp_size"):
        convert_checkpoint(arguments, gpus)


def test_context_logits_and_draft_tokens_exclude_each_other(
    checkpoint: Path, gpus: dict[str, str], tmp_path: Path
) -> None:
    flags = ["--gather_context_logits", "--max_draft_len", "4"]
    with pytest.raises(RuntimeError, match="context logits"):
        trtllm_build(["--checkpoint_dir", str(checkpoint), "--output_dir", str(tmp_path), *flags], gpus)


def test_a_build_without_a_gpu_fails(checkpoint: Path, tmp_path: Path) -> None:
    with pytest.raises(NoGPUError, match="no CUDA-capable device"):
        trtllm_build(["--checkpoint_dir", str(checkpoint), "--output_dir", str(tmp_path)], NO_GPU)


def test_a_refusal_ends_the_tool_with_exit_code_1_and_its_reason(
    checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_tool(trtllm_build, ["--checkpoint_dir", str(checkpoint)], NO_GPU) == 1
    assert "NoGPUError: trtllm-build" in capsys.readouterr().err


def test_a_flag_that_the_original_lacks_ends_the_tool_with_exit_code_2(checkpoint: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        trtllm_build(["--checkpoint_dir", str(checkpoint), "--tp_size", "2"], {})
    assert ended.value.code == 2


def test_the_tools_say_that_they_are_a_simulator(checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_tool(trtllm_build, ["--checkpoint_dir", str(checkpoint), "--dry_run"], {"NVIDIA_VISIBLE_DEVICES": "all"})
    assert all("[simulator]" in line for line in capsys.readouterr().out.splitlines())


def test_run_py_answers_from_an_engine(
    models: Path, target_engine: Path, gpus: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    tokenizer = ["--tokenizer_dir", str(models / "tiny-llama")]
    prompt = ["--max_output_len", "16", "--input_text", "The capital of France is"]
    run_engine(["--engine_dir", str(target_engine), *tokenizer, *prompt], gpus)
    assert "Paris" in capsys.readouterr().out


def test_run_py_drafts_where_the_engine_does(
    models: Path, eagle_engine: Path, gpus: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    tokenizer = ["--tokenizer_dir", str(models / "tiny-llama"), "--eagle_choices", "[[0],[0,0],[0,0,0],[0,0,0,0]]"]
    prompt = ["--max_output_len", "16", "--input_text", "The capital of France is"]
    run_engine(["--engine_dir", str(eagle_engine), *tokenizer, *prompt], gpus)
    said = capsys.readouterr().out
    assert "Paris" in said
    assert "drafted=0" not in said


def test_run_py_takes_lookahead_sizes(
    models: Path, lookahead_engine: Path, gpus: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--tokenizer_dir", str(models / "tiny-llama"), "--max_output_len", "16"]
    sizes = ["--lookahead_config", "[4,3,4]", "--input_text", "The capital of France is"]
    run_engine(["--engine_dir", str(lookahead_engine), *arguments, *sizes], gpus)
    assert "Paris" in capsys.readouterr().out


def test_an_external_draft_needs_its_length(checkpoint: Path, gpus: dict[str, str], tmp_path: Path) -> None:
    flags = ["--output_dir", str(tmp_path), "--speculative_decoding_mode", "draft_tokens_external"]
    with pytest.raises(CheckpointError, match="--max_draft_len must be given"):
        trtllm_build(["--checkpoint_dir", str(checkpoint), *flags], gpus)

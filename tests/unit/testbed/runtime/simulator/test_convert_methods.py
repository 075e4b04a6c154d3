"""The converters of heads and drafters, and what trtllm-build makes of their checkpoints."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from testbed.runtime.simulator.convert_checkpoint import convert_checkpoint
from testbed.runtime.simulator.convert_eagle import convert_eagle
from testbed.runtime.simulator.convert_medusa import convert_medusa
from testbed.runtime.simulator.convert_redrafter import convert_redrafter
from testbed.runtime.simulator.errors import CheckpointError, NoGPUError
from testbed.runtime.simulator.trtllm_build import trtllm_build

Tool = Callable[[Sequence[str], Mapping[str, str]], None]


def pretrained(directory: Path) -> dict[str, Any]:
    return dict(json.loads((directory / "config.json").read_text())["pretrained_config"])


@pytest.fixture
def eagle(models: Path, tmp_path: Path) -> list[str]:
    base = ["--model_dir", str(models / "tiny-llama"), "--output_dir", str(tmp_path / "checkpoint")]
    return [*base, "--eagle_model_dir", str(models / "tiny-llama-eagle")]


@pytest.fixture
def medusa(models: Path, tmp_path: Path) -> list[str]:
    base = ["--model_dir", str(models / "tiny-llama"), "--output_dir", str(tmp_path / "checkpoint")]
    return [*base, "--medusa_model_dir", str(models / "tiny-llama-medusa")]


@pytest.fixture
def redrafter(models: Path, checkpoint: Path, tmp_path: Path) -> list[str]:
    base = ["--base_model_checkpoint_dir", str(checkpoint), "--output_dir", str(tmp_path / "checkpoint")]
    return [*base, "--drafter_model_dir", str(models / "tiny-llama-redrafter")]


def test_an_eagle_engine_says_how_its_head_drafts(eagle_engine: Path) -> None:
    said = pretrained(eagle_engine)
    assert (said["architecture"], said["num_eagle_layers"], said["max_non_leaves_per_layer"]) == (
        "EagleForCausalLM",
        4,
        10,
    )


def test_a_medusa_engine_says_how_many_heads_it_has(medusa_engine: Path) -> None:
    said = pretrained(medusa_engine)
    assert (said["architecture"], said["num_medusa_heads"]) == ("MedusaForCausalLM", 4)


def test_a_redrafter_engine_says_how_it_searches(redrafter_engine: Path) -> None:
    said = pretrained(redrafter_engine)
    assert (said["redrafter_num_beams"], said["redrafter_draft_len_per_beam"], said["redrafter_greedy_search"]) == (
        4,
        5,
        True,
    )


@pytest.mark.parametrize(
    ("engine", "length", "mode"),
    [
        ("eagle_engine", 63, 32),
        ("medusa_engine", 63, 4),
        ("lookahead_engine", 15, 8),
        ("redrafter_engine", 20, 16),
    ],
)
def test_the_draft_length_is_the_checkpoints_or_the_flags(
    request: pytest.FixtureRequest, engine: str, length: int, mode: int
) -> None:
    build = json.loads((request.getfixturevalue(engine) / "config.json").read_text())["build_config"]
    assert (build["max_draft_len"], build["speculative_decoding_mode"]) == (length, mode)


def test_both_ranks_of_an_eagle_engine_have_a_file(eagle_engine: Path) -> None:
    assert len(list(eagle_engine.glob("rank*.engine"))) == 2


def test_eagle_refuses_pipeline_parallelism(eagle: list[str], gpus: dict[str, str]) -> None:
    with pytest.raises(CheckpointError, match="pipeline parallelism"):
        convert_eagle([*eagle, "--pp_size", "2"], gpus)


def test_an_eagle_head_left_out_is_refused(eagle: list[str], gpus: dict[str, str]) -> None:
    with pytest.raises(CheckpointError, match="--eagle_model_dir is not given"):
        convert_eagle(eagle[:-2], gpus)


def test_a_head_of_another_kind_is_refused(models: Path, eagle: list[str], gpus: dict[str, str]) -> None:
    with pytest.raises(CheckpointError, match="LlamaForCausalLMEagle3"):
        convert_eagle([*eagle[:-1], str(models / "tiny-llama-eagle3")], gpus)


def test_more_medusa_heads_than_there_are_is_refused(medusa: list[str], gpus: dict[str, str]) -> None:
    with pytest.raises(CheckpointError, match="5 MEDUSA heads are wanted, but the weights hold 4"):
        convert_medusa([*medusa, "--num_medusa_heads", "5"], gpus)


def test_fewer_medusa_heads_than_there_are_is_taken_silently(medusa: list[str], gpus: dict[str, str]) -> None:
    convert_medusa([*medusa, "--num_medusa_heads", "2"], gpus)


def test_a_drafter_on_a_base_of_another_split_is_refused(redrafter: list[str], gpus: dict[str, str]) -> None:
    with pytest.raises(CheckpointError, match="--tp_size 1: the base model's checkpoint has tp_size 2"):
        convert_redrafter(redrafter, gpus)


@pytest.mark.parametrize(("release", "base"), [("25.05", "--model_dir"), ("26.02", "--base_model_checkpoint_dir")])
def test_a_drafter_is_added_to_what_the_release_s_converter_takes(
    models: Path, checkpoint: Path, tmp_path: Path, gpus: dict[str, str], release: str, base: str
) -> None:
    bases = {"--model_dir": models / "tiny-llama", "--base_model_checkpoint_dir": checkpoint}
    drafter = ["--drafter_model_dir", str(models / "tiny-llama-redrafter"), "--output_dir", str(tmp_path)]
    other = next(flag for flag in bases if flag != base)
    environment = {**gpus, "NVIDIA_TRITON_SERVER_VERSION": release}
    convert_redrafter([base, str(bases[base]), *drafter, "--tp_size", "2"], environment)

    assert json.loads((tmp_path / "config.json").read_text())["architecture"] == "ReDrafterForLLaMALM"
    with pytest.raises(SystemExit):
        convert_redrafter([other, str(bases[other]), *drafter], environment)


def test_a_search_without_beams_is_refused(redrafter: list[str], gpus: dict[str, str]) -> None:
    with pytest.raises(CheckpointError, match="must be at least 1"):
        convert_redrafter([*redrafter, "--tp_size", "2", "--redrafter_num_beams", "0"], gpus)


@pytest.mark.parametrize(
    ("name", "tool"), [("eagle", convert_eagle), ("medusa", convert_medusa), ("redrafter", convert_redrafter)]
)
def test_a_converter_without_a_gpu_fails(request: pytest.FixtureRequest, name: str, tool: Tool) -> None:
    with pytest.raises(NoGPUError, match="no CUDA-capable device"):
        tool(request.getfixturevalue(name), {"NVIDIA_VISIBLE_DEVICES": "void"})


@pytest.mark.parametrize(
    ("flags", "refusal"),
    [
        ([], "--speculative_decoding_mode none: the checkpoint is one for medusa"),
        (
            ["--speculative_decoding_mode", "eagle"],
            "--speculative_decoding_mode eagle: the checkpoint is one for medusa",
        ),
        (
            ["--speculative_decoding_mode", "medusa", "--max_draft_len", "5"],
            "the checkpoint was converted for 63 draft tokens",
        ),
        (["--speculative_decoding_mode", "medusa", "--max_beam_width", "2"], "--max_beam_width must be 1"),
    ],
)
def test_a_build_that_does_not_fit_its_checkpoint_is_refused(
    medusa: list[str], gpus: dict[str, str], tmp_path: Path, flags: list[str], refusal: str
) -> None:
    convert_medusa(medusa, gpus)
    with pytest.raises(CheckpointError, match=refusal):
        trtllm_build(["--checkpoint_dir", str(tmp_path / "checkpoint"), "--output_dir", str(tmp_path), *flags], gpus)


def test_a_plain_checkpoint_is_no_eagle_checkpoint(checkpoint: Path, gpus: dict[str, str], tmp_path: Path) -> None:
    flags = ["--output_dir", str(tmp_path), "--speculative_decoding_mode", "eagle"]
    with pytest.raises(CheckpointError, match="the checkpoint is one for none or draft_tokens_external"):
        trtllm_build(["--checkpoint_dir", str(checkpoint), *flags], gpus)


def test_context_logits_and_heads_exclude_each_other(medusa: list[str], gpus: dict[str, str], tmp_path: Path) -> None:
    convert_medusa(medusa, gpus)
    flags = ["--speculative_decoding_mode", "medusa", "--gather_context_logits"]
    with pytest.raises(RuntimeError, match="context logits"):
        trtllm_build(["--checkpoint_dir", str(tmp_path / "checkpoint"), "--output_dir", str(tmp_path), *flags], gpus)


def test_tensor_times_pipeline_parallelism_gives_the_rank_files(
    models: Path, gpus: dict[str, str], tmp_path: Path
) -> None:
    split = ["--tp_size", "2", "--pp_size", "2", "--output_dir", str(tmp_path / "checkpoint")]
    convert_checkpoint(["--model_dir", str(models / "tiny-llama"), *split], gpus)
    trtllm_build(["--checkpoint_dir", str(tmp_path / "checkpoint"), "--output_dir", str(tmp_path / "engine")], gpus)
    names = sorted(file.name for file in (tmp_path / "engine").glob("*.engine"))
    assert names == [f"rank{rank}.engine" for rank in range(4)]


def test_layers_that_cannot_be_shared_evenly_are_refused(models: Path, gpus: dict[str, str], tmp_path: Path) -> None:
    arguments = ["--model_dir", str(models / "tiny-llama"), "--output_dir", str(tmp_path), "--pp_size", "3"]
    with pytest.raises(CheckpointError, match=r"num_hidden_layers \(4\) is not divisible by pp_size \(3\)"):
        convert_checkpoint(arguments, gpus)


@pytest.mark.parametrize(
    ("flags", "algorithm"),
    [
        (["--use_weight_only"], "W8A16"),
        (["--use_weight_only", "--weight_only_precision", "int4"], "W4A16"),
        (["--smoothquant", "0.5", "--per_channel", "--per_token"], "W8A8_SQ_PER_CHANNEL"),
    ],
)
def test_weight_only_is_a_mark_in_the_checkpoint(
    models: Path,
    gpus: dict[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    flags: list[str],
    algorithm: str,
) -> None:
    convert_checkpoint(["--model_dir", str(models / "tiny-llama"), "--output_dir", str(tmp_path), *flags], gpus)
    marked = json.loads((tmp_path / "config.json").read_text())["quantization"]["quant_algo"]
    assert (marked, "nothing is quantized" in capsys.readouterr().out) == (algorithm, True)

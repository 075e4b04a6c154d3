"""Building an engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from specdec_operator.pod.build import build
from specdec_operator.pod.driver import DriverFloor
from specdec_operator.pod.errors import ProgramFailure
from specdec_operator.pod.inputs import BuildInput, BuildStep, VerifyEngineInput
from specdec_operator.pod.verify_engine import verify_engine
from tests.unit.pod.models import write_model
from tests.unit.pod.tools import Image, engine_config

if TYPE_CHECKING:
    from pathlib import Path

BUILD = BuildStep(name="build", argv=("trtllm-build", "--checkpoint_dir={checkpoint}", "--output_dir", "{engine}"))
BUILDER_HELP = "if [ \"$1\" = --help ]; then echo '  --checkpoint_dir DIR --output_dir DIR'; exit; fi"
WRITE_ENGINE = (
    f"echo called >> $(dirname $0)/calls; echo engine > $3/rank0.engine; echo '{engine_config()}' > $3/config.json"
)


def builder(container: Image, script: str) -> None:
    """A trtllm-build that knows its help."""
    container.program("trtllm-build", f"{BUILDER_HELP}\n{script}")


@pytest.fixture
def given(container: Image, tmp_path: Path) -> BuildInput:
    container.gpus()
    container.tensorrt_llm("1.1.0")
    builder(container, WRITE_ENGINE)
    (tmp_path / "store").mkdir()
    return BuildInput(
        model=str(write_model(tmp_path / "model")),
        store=str(tmp_path / "store"),
        directory="engines/key",
        steps=(BUILD,),
        ranks=1,
        tensorrt_llm_version="1.1.0",
        gpu_product="NVIDIA-H100-80GB-HBM3",
    )


def changed(given: BuildInput, **changes: Any) -> BuildInput:
    return BuildInput(**{**{name: getattr(given, name) for name in given.__dataclass_fields__}, **changes})


def failure(given: BuildInput) -> ProgramFailure:
    with pytest.raises(ProgramFailure) as caught:
        build(given)
    return caught.value


def test_a_built_engine_is_published_whole(given: BuildInput, tmp_path: Path) -> None:
    result = build(given)

    engine = VerifyEngineInput(directory=str(tmp_path / "store/engines/key"), ranks=1, digest=result["digest"])
    assert verify_engine(engine)["bytes"] == result["bytes"]


def test_nothing_but_the_engine_is_left_in_the_store(given: BuildInput, tmp_path: Path) -> None:
    build(given)

    assert [path.name for path in (tmp_path / "store").iterdir()] == ["engines"]


def test_nothing_is_built_on_a_driver_that_does_not_run_the_image(given: BuildInput, container: Image) -> None:
    container.gpus("NVIDIA GeForce RTX 4090", driver="535.183.06")
    floor = DriverFloor(minimum="580", data_center=("535.86",))

    assert failure(changed(given, gpu_product="", driver=floor)).reason == "DriverTooOld"
    assert not (container.directory / "calls").exists()


def test_an_engine_is_built_once(given: BuildInput, container: Image) -> None:
    first = build(given)
    second = build(given)

    assert second == {**first, "reused": True}
    assert (container.directory / "calls").read_text() == "called\n"


def test_an_engine_is_reused_without_a_gpu(given: BuildInput, container: Image) -> None:
    build(given)
    container.program("nvidia-smi", "exit 9")

    assert build(given)["reused"] is True


def test_a_damaged_engine_is_built_anew(given: BuildInput, tmp_path: Path) -> None:
    build(given)
    (tmp_path / "store/engines/key/rank0.engine").write_text("cut")

    assert build(given)["reused"] is False


def test_scratch_folders_of_earlier_pods_are_removed(given: BuildInput, tmp_path: Path) -> None:
    old = tmp_path / "store/scratch/key/pod-0/checkpoint"
    old.mkdir(parents=True)
    build(given)

    assert not old.exists()


def test_a_failed_step_is_terminal_and_says_its_last_lines(given: BuildInput, container: Image) -> None:
    builder(container, "seq 100; echo 'max_seq_len too small' >&2; exit 1")
    failed = failure(given)

    assert (failed.reason, failed.terminal) == ("EngineBuildFailed", True)
    assert failed.message.endswith("99\n100\nmax_seq_len too small")
    assert "\n80\n" not in failed.message


def test_a_failed_step_leaves_no_scratch_folder(given: BuildInput, container: Image, tmp_path: Path) -> None:
    builder(container, "exit 1")
    failure(given)

    assert list((tmp_path / "store").iterdir()) == []


@pytest.mark.parametrize(
    "script", ["kill -9 $$", "exit 137", "echo 'torch.OutOfMemoryError: CUDA out of memory.'; exit 1"]
)
def test_a_step_without_memory_is_named(given: BuildInput, container: Image, script: str) -> None:
    builder(container, script)

    assert failure(given).reason == "OutOfMemory"


def test_a_build_without_all_ranks_is_incomplete(given: BuildInput) -> None:
    assert failure(changed(given, ranks=2)).reason == "EngineIncomplete"


def test_a_store_without_room_is_refused_before_the_first_step(given: BuildInput, container: Image) -> None:
    assert failure(changed(given, scratch_bytes=2**60)).reason == "StoreFull"
    assert not (container.directory / "calls").exists()


def test_another_gpu_is_refused_before_the_first_step(given: BuildInput, container: Image) -> None:
    container.gpus("NVIDIA A100-SXM4-80GB")

    assert failure(given).reason == "EngineGpuMismatch"
    assert not (container.directory / "calls").exists()


def test_a_missing_gpu_may_be_retried(given: BuildInput, container: Image) -> None:
    container.program("nvidia-smi", "exit 6")
    failed = failure(given)

    assert (failed.reason, failed.terminal) == ("GpuMissing", False)


def test_another_tensorrt_llm_is_refused(given: BuildInput) -> None:
    assert failure(changed(given, tensorrt_llm_version="1.2.1")).reason == "TensorRTLLMVersionMismatch"


def test_a_model_that_is_not_there_is_named(given: BuildInput) -> None:
    assert failure(changed(given, model="/nowhere")).reason == "NotAModel"


def convert(*arguments: str, program: str) -> BuildStep:
    return BuildStep(name="convert", argv=(program, "--model_dir", "{model}", *arguments))


HELP = "if [ \"$1\" = --help ]; then echo '  --model_dir DIR --output_dir DIR'; exit; fi; mkdir $4"


def test_the_first_candidate_that_exists_is_run(given: BuildInput, container: Image) -> None:
    program = container.program("examples/convert_checkpoint.py", HELP)
    step = convert("--output_dir", "{checkpoint}", program=f"/gone/convert_checkpoint.py|{program}")

    assert build(changed(given, steps=(step, BUILD)))["reused"] is False


def test_a_script_may_have_candidates_behind_its_interpreter(given: BuildInput, container: Image) -> None:
    program = container.program("examples/convert_checkpoint.py", HELP)
    argv = ("sh", f"/gone/convert.py|{program}", "--model_dir", "{model}", "--output_dir", "{checkpoint}")

    assert build(changed(given, steps=(BuildStep(name="prepare", argv=argv), BUILD)))["reused"] is False


def test_an_argument_that_the_images_program_does_not_know_is_refused(given: BuildInput, container: Image) -> None:
    program = container.program("convert_checkpoint.py", HELP)
    step = convert("--output_dir", "{checkpoint}", "--new_flag=1", program=str(program))
    failed = failure(changed(given, steps=(step, BUILD)))

    assert failed.reason == "UnknownBuildArgument"
    assert "--new_flag" in failed.message


def test_a_flag_that_is_part_of_a_longer_one_is_unknown(given: BuildInput, container: Image) -> None:
    program = container.program("convert_checkpoint.py", HELP)
    step = convert("--output_dir", "{checkpoint}", "--model", program=str(program))

    assert failure(changed(given, steps=(step, BUILD))).reason == "UnknownBuildArgument"


def test_flags_are_judged_before_the_first_step_runs(given: BuildInput, container: Image) -> None:
    program = container.program("convert_checkpoint.py", f"{HELP}; echo ran >> $(dirname $0)/ran")
    step = convert("--output_dir", "{checkpoint}", program=str(program))
    late = BuildStep(name="build", argv=(*BUILD.argv, "--new_option", "enable"))
    failed = failure(changed(given, steps=(step, late)))

    assert failed.message == (
        "step build: the image's trtllm-build doesn't know --new_option; declare the release that the image really is, "
        "in spec.runtime.release, or remove the option from spec.engine.extraBuildArguments"
    )
    assert not (container.directory / "ran").exists()


def test_a_head_is_read_beside_its_model(given: BuildInput, container: Image, tmp_path: Path) -> None:
    program = container.program("convert_checkpoint.py", f"{HELP}; ls $2 > $(dirname $0)/head")
    head = write_model(tmp_path / "head")
    step = BuildStep(name="convert", argv=(str(program), "--model_dir", "{head}", "--output_dir", "{checkpoint}"))
    build(changed(given, head=str(head), steps=(step, BUILD)))

    assert "model.safetensors" in (container.directory / "head").read_text()


def test_a_head_that_is_not_there_is_named(given: BuildInput) -> None:
    failed = failure(changed(given, head="/nowhere"))

    assert (failed.reason, "/nowhere" in failed.message) == ("NotAModel", True)


def test_checkpoints_of_two_steps_lie_apart(given: BuildInput, container: Image) -> None:
    program = container.program("convert_checkpoint.py", f"{HELP}; echo $4 >> $(dirname $0)/places")
    steps = tuple(convert("--output_dir", place, program=str(program)) for place in ("{base}", "{checkpoint}"))
    build(changed(given, steps=(*steps, BUILD)))
    base, checkpoint = (container.directory / "places").read_text().split()

    assert (base.rpartition("/")[2], checkpoint.rpartition("/")[2]) == ("base", "checkpoint")


def test_an_engine_that_gives_no_tokens_is_not_published(given: BuildInput, container: Image, tmp_path: Path) -> None:
    program = container.program("run.py", "echo 'bad engine'; exit 1")
    failed = failure(changed(given, steps=(BUILD, BuildStep(name="prove", argv=(str(program), "{engine}")))))

    assert failed.message == "step prove ended with exit code 1. Its last lines: bad engine"
    assert not (tmp_path / "store/engines/key").exists()


def test_an_image_without_a_run_script_proves_nothing(given: BuildInput) -> None:
    prove = BuildStep(name="prove", argv=("/gone/run.py", "{engine}"))

    assert build(changed(given, steps=(BUILD, prove)))["reused"] is False


def test_a_program_that_is_not_in_the_image_is_named(given: BuildInput) -> None:
    failed = failure(changed(given, steps=(convert(program="/gone/a.py|/gone/b.py"),)))

    assert failed.reason == "BuildProgramMissing"
    assert "/gone/a.py, /gone/b.py" in failed.message


def test_a_pod_without_uid_is_refused(given: BuildInput, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POD_UID")

    assert failure(given).reason == "InvalidInput"

"""Looking at an engine that somebody else built."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from specdec_operator.pod.errors import ProgramFailure
from specdec_operator.pod.inputs import EngineExpectation, InspectEngineInput
from specdec_operator.pod.inspect_engine import inspect_engine
from specdec_operator.pod.prebuilt_engine import require_prebuilt
from tests.unit.pod.shipped import ShippedProgram
from tests.unit.pod.tools import engine_config, write_engine

if TYPE_CHECKING:
    from pathlib import Path


def given(directory: Path, **changes: Any) -> InspectEngineInput:
    wanted = {"directory": str(directory), "ranks": 1, "prebuilt": True, **changes}
    return InspectEngineInput(engine=EngineExpectation(**wanted), tensorrt_llm_version="1.1.0")


def failure(directory: Path, **changes: Any) -> ProgramFailure:
    with pytest.raises(ProgramFailure) as caught:
        inspect_engine(given(directory, **changes))
    assert caught.value.terminal
    return caught.value


def test_an_engine_without_a_manifest_is_taken(tmp_path: Path) -> None:
    engine = write_engine(tmp_path / "e", ranks=2)
    result = inspect_engine(given(engine, ranks=2))

    assert result == {"digest": require_prebuilt(engine, ranks=2), "bytes": len(engine_config()) + 16, "ranks": 2}


@pytest.mark.parametrize("number", [32, "EAGLE", "eagle"])
def test_a_mode_may_be_a_number_or_a_word(tmp_path: Path, number: int | str) -> None:
    config = engine_config(speculative_decoding_mode=number, max_draft_len=63, max_batch_size=4)
    engine = write_engine(tmp_path / "e", config=config)

    assert inspect_engine(given(engine, speculative_mode="eagle", draft_tokens=63, batch=4))["ranks"] == 1


def test_another_engine_has_another_digest(tmp_path: Path) -> None:
    first = inspect_engine(given(write_engine(tmp_path / "a")))
    second = inspect_engine(given(write_engine(tmp_path / "b", config=engine_config(max_batch_size=4))))

    assert first["digest"] != second["digest"]


def test_a_directory_without_an_engine_is_named(tmp_path: Path) -> None:
    assert failure(tmp_path).reason == "EngineMissing"


@pytest.mark.parametrize("ranks", [1, 4])
def test_another_number_of_ranks_is_refused(tmp_path: Path, ranks: int) -> None:
    assert failure(write_engine(tmp_path / "e", ranks=2), ranks=ranks).reason == "EngineIncomplete"


def test_an_engine_of_another_tensorrt_llm_is_refused(tmp_path: Path) -> None:
    engine = write_engine(tmp_path / "e", config=engine_config(version="1.0.0"))

    assert failure(engine).reason == "TensorRTLLMVersionMismatch"


def test_an_engine_with_other_logits_is_refused(tmp_path: Path) -> None:
    engine = write_engine(tmp_path / "e", config=engine_config(logits_data_type="float16"))

    assert failure(engine, logits_data_type="float32").reason == "LogitsTypeMismatch"


def test_an_engine_of_another_method_is_refused(tmp_path: Path) -> None:
    engine = write_engine(tmp_path / "e", config=engine_config(speculative_decoding_mode=4, tp_size=1))

    assert failure(engine, speculative_mode="eagle").reason == "EngineMismatch"


@pytest.mark.parametrize("text", ["[]", "{", '{"pretrained_config": [1]}'])
def test_a_config_that_is_none_is_damaged(tmp_path: Path, text: str) -> None:
    assert failure(write_engine(tmp_path / "e", config=text)).reason == "EngineDamaged"


def test_the_program_runs_from_the_config_map(tmp_path: Path) -> None:
    program = ShippedProgram.lay_out("inspect_engine", tmp_path / "program")
    code, output = program.run(given(write_engine(tmp_path / "e")))

    assert (code, output) == (0, "")

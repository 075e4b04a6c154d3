"""Assembling the model repository."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from specdec_operator.pod.assemble import assemble
from specdec_operator.pod.errors import ProgramFailure
from specdec_operator.pod.inputs import AssembleInput, ModelTemplate
from specdec_operator.pod.model_config import get_field, parameters
from specdec_operator.pod.textproto import Message, parse, print_message

CONFIG = """# a comment with ${nothing}
name: "tensorrt_llm"
backend: "${triton_backend}"
max_batch_size: ${triton_max_batch_size}
parameters: { key: "gpt_model_path" value: { string_value: "${engine_dir}" } }
parameters: { key: "participant_ids" value: { string_value: "${participant_ids}" } }
"""
VALUES = {"triton_backend": "tensorrtllm", "triton_max_batch_size": "4", "engine_dir": "/engines/target"}


@pytest.fixture
def image(tmp_path: Path) -> Path:
    template = tmp_path / "image" / "tensorrt_llm"
    (template / "1").mkdir(parents=True)
    (template / "config.pbtxt").write_text(CONFIG)
    (template / "1" / "model.py").write_text("# ${engine_dir} stays in programs\n")
    (template / "1" / "__pycache__").mkdir()
    (template / "1" / "__pycache__" / "model.pyc").touch()
    return template


def plan(image: Path, **changes: Any) -> AssembleInput:
    given: dict[str, Any] = {
        "name": "tensorrt_llm",
        "candidates": ("/nowhere", str(image)),
        "values": VALUES,
        "unset": ("participant_ids",),
        **changes,
    }
    output = str(image.parent.parent / "repository")
    return AssembleInput(output=output, models=(ModelTemplate(**given),), revision_model="tensorrt_llm")


def config(given: AssembleInput, model: str = "tensorrt_llm") -> Message:
    return parse((Path(given.output) / model / "config.pbtxt").read_text())


def reason(given: AssembleInput) -> str:
    with pytest.raises(ProgramFailure) as caught:
        assemble(given)
    assert caught.value.terminal
    return caught.value.reason


def test_values_reach_the_configuration(image: Path) -> None:
    given = plan(image)
    assemble(given)

    assert get_field(config(given), "max_batch_size") == 4
    assert parameters(config(given))["gpt_model_path"] == "/engines/target"


def test_an_unset_variable_stays_as_the_backend_knows_it(image: Path) -> None:
    given = plan(image)
    assemble(given)

    assert parameters(config(given))["participant_ids"] == "${participant_ids}"


def test_the_templates_programs_are_copied_as_they_are(image: Path) -> None:
    given = plan(image)
    assemble(given)

    copied = Path(given.output) / "tensorrt_llm" / "1"
    assert [path.name for path in copied.iterdir()] == ["model.py"]
    assert (copied / "model.py").read_text() == (image / "1" / "model.py").read_text()


def test_a_model_takes_the_plans_name(image: Path) -> None:
    given = replace(plan(image, name="tensorrt_llm_draft"), revision_model="tensorrt_llm_draft")
    assemble(given)

    assert get_field(config(given, "tensorrt_llm_draft"), "name") == "tensorrt_llm_draft"


def test_fields_and_parameters_are_set_beside_the_template(image: Path) -> None:
    given = plan(image, fields={"model_transaction_policy.decoupled": False}, parameters={"recv_poll_period_ms": "1"})
    assemble(given)

    assert get_field(config(given), "model_transaction_policy.decoupled") is False
    assert parameters(config(given))["recv_poll_period_ms"] == "1"


def test_files_are_written_as_they_are(image: Path) -> None:
    given = plan(image, files={"1/model.yaml": "backend: pytorch\n"})
    assemble(given)

    assert (Path(given.output) / "tensorrt_llm" / "1" / "model.yaml").read_text() == "backend: pytorch\n"


def test_a_model_without_template_is_made_of_its_files_and_fields(image: Path) -> None:
    given = plan(image, candidates=(), values={}, fields={"backend": "vllm"}, files={"1/model.json": "{}"})
    assemble(given)

    assert get_field(config(given), "backend") == "vllm"


def test_a_model_always_has_a_version_directory(image: Path) -> None:
    given = plan(image, candidates=(), values={}, fields={"platform": "ensemble"})
    assemble(given)

    assert (Path(given.output) / "tensorrt_llm" / "1").is_dir()


def test_a_variable_that_the_plan_does_not_know_is_refused(image: Path) -> None:
    assert reason(plan(image, unset=())) == "UnknownTemplateVariable"


def test_a_value_that_the_template_does_not_use_is_refused(image: Path) -> None:
    assert reason(plan(image, values={**VALUES, "engine_directory": "/x"})) == "UnusedTemplateVariable"


def test_an_optional_value_may_be_one_that_the_template_does_not_have(image: Path) -> None:
    given = plan(image, optional_values={"prompt_embedding_table_data_type": "TYPE_FP16"})
    assemble(given)

    assert "prompt_embedding_table_data_type" not in print_message(config(given))


def test_an_optional_value_is_filled_where_the_template_asks_for_it(image: Path) -> None:
    values = {name: text for name, text in VALUES.items() if name != "engine_dir"}
    given = plan(image, values=values, optional_values={"engine_dir": VALUES["engine_dir"]})
    assemble(given)

    assert parameters(config(given))["gpt_model_path"] == VALUES["engine_dir"]


def test_a_variable_may_be_declared_unset_that_the_template_does_not_have(image: Path) -> None:
    given = plan(image, unset=("participant_ids", "num_nodes"))
    assemble(given)

    assert "num_nodes" not in parameters(config(given))


def test_a_proto_field_cannot_be_unset(image: Path) -> None:
    values = {key: value for key, value in VALUES.items() if key != "triton_max_batch_size"}

    assert reason(plan(image, values=values, unset=("participant_ids", "triton_max_batch_size"))) == "UnsetProtoField"


def test_a_template_that_is_not_there_is_named(image: Path) -> None:
    assert reason(plan(image, candidates=("/nowhere", "/neither"))) == "TemplateNotFound"


def test_a_template_that_is_no_configuration_is_named(image: Path) -> None:
    (image / "config.pbtxt").write_text("max_batch_size {")

    assert reason(plan(image)) == "TemplateUnreadable"


def test_a_result_without_an_expected_parameter_is_refused(image: Path) -> None:
    assert reason(plan(image, expected_parameters={"gpt_model_path": "/engines/draft"})) == "AssemblyMismatch"


@pytest.mark.parametrize("expected", [{"return_perf_metrics": "TYPE_BOOL"}, {"max_tokens": "TYPE_INT64"}])
def test_a_template_that_does_not_declare_what_is_sent_is_a_mismatch(image: Path, expected: dict[str, str]) -> None:
    with (image / "config.pbtxt").open("a") as template:
        template.write('input [ { name: "max_tokens" data_type: TYPE_INT32 dims: [ 1 ] } ]\n')
    assemble(plan(image, expected_inputs={"max_tokens": "TYPE_INT32"}))

    assert reason(plan(image, expected_inputs=expected)) == "AssemblyMismatch"


@pytest.mark.parametrize("path", ["../x", "/etc/passwd"])
def test_a_file_cannot_leave_its_model(image: Path, path: str) -> None:
    assert reason(plan(image, files={path: ""})) == "PathOutsideStore"


def test_the_digest_does_not_depend_on_the_place(image: Path) -> None:
    one = assemble(plan(image))
    other = assemble(replace(plan(image), output=str(image.parent / "elsewhere")))

    assert one == other


def test_the_digest_does_not_depend_on_the_revision(image: Path) -> None:
    assert assemble(plan(image))["digest"] == assemble(replace(plan(image), revision="r1"))["digest"]


def test_the_digest_follows_the_templates_programs(image: Path) -> None:
    before = assemble(plan(image))
    (image / "1" / "model.py").write_text("# another release\n")
    after = assemble(plan(image))

    assert before["digest"] != after["digest"]
    assert before["templates"] != after["templates"]


def test_a_repository_that_is_not_the_prepared_one_is_refused(image: Path) -> None:
    assert reason(replace(plan(image), expected_digest="0" * 64)) == "AssemblyChanged"


def test_the_prepared_repository_is_accepted(image: Path) -> None:
    digest = assemble(plan(image))["digest"]

    assert assemble(replace(plan(image), expected_digest=digest, revision="r1"))["digest"] == digest


def test_the_revision_becomes_a_parameter(image: Path) -> None:
    given = replace(plan(image), revision="llama-7f3")
    assemble(given)

    assert parameters(config(given))["specdec_revision"] == "llama-7f3"


def test_a_restarted_container_assembles_anew(image: Path) -> None:
    given = replace(plan(image), revision="r1")
    first = assemble(given)
    (Path(given.output) / "stray").write_text("x")

    assert assemble(given) == first
    assert [path.name for path in Path(given.output).iterdir()] == ["tensorrt_llm"]


def test_a_revision_for_no_model_is_refused(image: Path) -> None:
    assert reason(replace(plan(image), revision="r1", revision_model="ensemble")) == "InvalidInput"


def test_two_models_of_one_name_are_refused(image: Path) -> None:
    given = plan(image)

    assert reason(replace(given, models=given.models * 2)) == "InvalidInput"

from __future__ import annotations

import io
import resource
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import yaml

from specdec_operator.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

VALID = """\
apiVersion: specdec.dev/v1alpha1
kind: SpeculativeModel
metadata: {name: baseline}
spec:
  target: {source: {huggingFace: {repository: a/b}}}
  speculation: {method: None}
  storage: {claimName: store}
"""
WITHOUT_STORE = VALID.replace("  storage: {claimName: store}\n", "")
INVALID = VALID.replace("baseline", "broken").replace("repository: a/b", "repository: b") + "  replicas: 65\n"
DEPLOYMENT = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "model.yaml"


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_a_valid_model_is_said_to_be_valid(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(VALID)

    assert main(["validate", str(file)]) == 0
    assert lines(capsys) == [f"{file}:baseline: valid"]


def test_a_pod_with_more_gpus_than_usual_nodes_have_is_noted(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(VALID.replace("a/b}}", "a/b}}, parallelism: {tensor: 16}"))

    assert main(["validate", str(file)]) == 0
    assert "spec.target.parallelism: each pod asks for 16 GPUs" in capsys.readouterr().out


def test_every_finding_has_a_line_with_file_object_and_field(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(INVALID)

    assert main(["validate", str(file)]) == 1
    assert [line.rsplit(": must", 1)[0] for line in lines(capsys)] == [
        f"{file}:broken: spec.target.source.huggingFace.repository",
        f"{file}:broken: spec.replicas",
    ]


def test_every_object_of_a_file_is_validated(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(f"{INVALID}---\n{VALID}")

    assert main(["validate", str(file)]) == 1
    assert lines(capsys)[-1] == f"{file}:baseline: valid"


def test_every_file_is_validated(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(VALID)
    other = file.with_name("other.yaml")
    other.write_text(INVALID)

    assert main(["validate", str(other), str(file)]) == 1
    assert lines(capsys)[-1] == f"{file}:baseline: valid"


def test_objects_of_other_apis_are_skipped_with_a_note(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(DEPLOYMENT)

    assert main(["validate", str(file)]) == 0
    assert lines(capsys) == [f"{file}:web: skipped: Deployment is not of specdec.dev"]


def test_a_model_of_a_misspelt_group_is_not_skipped(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(VALID.replace("specdec.dev", "specdec.dv"))

    assert main(["validate", str(file)]) == 1
    assert "apiVersion: must be specdec.dev/v1alpha1" in lines(capsys)[0]


def test_a_misspelt_kind_is_not_skipped(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(VALID.replace("kind: SpeculativeModel", "kind: SpeculativeModle"))

    assert main(["validate", str(file)]) == 1
    assert "kind: must be one of SpeculativeModel" in lines(capsys)[0]


def test_an_object_without_a_kind_is_not_skipped(file: Path) -> None:
    file.write_text("spec: {}\n")

    assert main(["validate", str(file)]) == 1


def test_standard_input_is_read_for_a_dash(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(VALID.encode())))

    assert main(["validate", "-"]) == 0
    assert lines(capsys) == ["-:baseline: valid"]


def test_a_missing_file_is_an_error_of_its_own(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", str(file)]) == 2
    assert capsys.readouterr().err == f"{file}: No such file or directory\n"


def test_a_missing_file_hides_no_findings_of_the_others(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(INVALID)

    assert main(["validate", "missing.yaml", str(file)]) == 2
    assert len(lines(capsys)) == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [1\nb: 2\n", ":2: did not find expected ',' or ']'"),
        ("a: 1\nb: 2\na: 3\n", ":3: the key 'a' occurs twice in one map; remove one"),
        ("---\na: 1\n---\n- 1\n", ":4: not a Kubernetes object"),
        ("a: !!python/object:os.system {}\n", ":1: could not determine a constructor"),
        ("a: \x00\n", ": unacceptable character"),
        ("a: &loop [*loop]\n", ":1: found unconstructable recursive node"),
        (f"a: {'[' * 999}{']' * 999}\n", ":1: nested too deeply"),
    ],
)
def test_what_is_no_yaml_is_an_error_with_its_line(
    *, file: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    file.write_text(text)

    assert main(["validate", str(file)]) == 2
    assert f"{file}{said}" in capsys.readouterr().err


def test_what_is_no_text_is_an_error(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_bytes(b"\xff\xfe\x00")

    assert main(["validate", str(file)]) == 2
    assert "not UTF-8 text" in capsys.readouterr().err


def test_an_empty_file_is_noted(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text("---\n")

    assert main(["validate", str(file)]) == 0
    assert "holds no object" in lines(capsys)[0]


def test_a_date_stays_text(file: Path) -> None:
    file.write_text(VALID + "  pod: {annotations: {built: 2026-11-21}}\n")

    assert main(["validate", str(file)]) == 0


def test_anchors_and_merged_keys_are_understood(file: Path) -> None:
    file.write_text(
        VALID.replace("speculation: {method: None}", "speculation: {<<: &m {method: DraftTarget}, method: None}")
    )

    assert main(["validate", str(file)]) == 0


def test_validating_takes_less_than_a_second_and_imports_no_client(file: Path) -> None:
    file.write_text(VALID)
    program = (
        "import sys; from specdec_operator.cli.main import main; code = main(sys.argv[1:]); "
        "heavy = {'kopf', 'kubernetes', 'aiohttp', 'tritonclient'} & set(sys.modules); "
        "sys.exit(f'imported {heavy}' if heavy else code)"
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)

    subprocess.run([sys.executable, "-c", program, "validate", str(file)], check=True)

    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    # Seconds of a processor, of which a machine with much else to do gives more than the one of an idle machine.
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 2


@pytest.fixture
def configuration(tmp_path: Path) -> Path:
    file = tmp_path / "configuration.yaml"
    file.write_text("gpuProduct: NVIDIA-A10\n")
    return file


def test_what_the_operator_would_refuse_is_found(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(f"{VALID}  pod: {{environment: [{{name: LD_PRELOAD, value: a}}]}}\n")

    assert main(["validate", str(file)]) == 1
    assert lines(capsys)[0].startswith(f"{file}:baseline: spec.pod.environment[0].name: LD_PRELOAD is set by")


def test_what_the_operator_may_have_a_default_for_is_noted(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(f"{WITHOUT_STORE}  runtime: {{backend: TensorRTEngine}}\n")

    assert main(["validate", str(file)]) == 0
    assert [line.rpartition(": left out, so")[0] or line for line in lines(capsys)] == [
        f"{file}:baseline: valid",
        f"{file}:baseline: note: spec.placement.gpu.product",
        f"{file}:baseline: note: spec.storage",
    ]


def test_what_this_operator_has_no_default_for_is_a_finding(
    file: Path, configuration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(f"{WITHOUT_STORE}  runtime: {{backend: TensorRTEngine}}\n")

    assert main(["validate", "--configuration", str(configuration), str(file)]) == 1
    assert [line.split(": ")[1] for line in lines(capsys)] == ["spec.storage"]


def test_what_is_wrong_is_not_mixed_with_defaults(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(WITHOUT_STORE + "  replicas: 65\n")

    assert main(["validate", str(file)]) == 1
    assert len(lines(capsys)) == 1


def test_a_configuration_that_can_not_be_read_is_said(
    file: Path, configuration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(VALID)
    configuration.write_text("workers: 0\n")

    assert main(["validate", "--configuration", str(configuration), str(file)]) == 2
    assert "workers" in capsys.readouterr().err


BROKEN_IN_TWO_WAYS = """
apiVersion: specdec.dev/v1alpha1
kind: SpeculativeModel
metadata: {name: twice}
spec:
  runtime: {release: "99.01"}
  target: {source: {huggingFace: {repository: a/b}}}
  draft: {source: {huggingFace: {repository: a/c}}}
  speculation: {method: Eagle3}
  serving: {draftKvCache: {}}
"""


def test_a_broken_rule_hides_nothing_that_the_operator_would_refuse(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(BROKEN_IN_TWO_WAYS)
    assert main(["validate", str(file)]) == 1
    found = [line.split(": ")[1] for line in lines(capsys)]
    assert found == ["spec.serving.draftKvCache", "spec.runtime.release"]


def test_what_follows_from_a_broken_rule_is_not_said_twice(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(BROKEN_IN_TWO_WAYS.replace("99.01", "26.02"))
    assert main(["validate", str(file)]) == 1
    assert len(lines(capsys)) == 1


def test_a_surprising_number_is_noted(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(VALID + "  replicas: 010\n  pod: {labels: {on: b}}\n")

    assert main(["validate", str(file)]) == 0
    assert lines(capsys)[1:] == [
        f"{file}:baseline: note: spec.replicas: 010 is read as 8 (octal, by its leading 0): write 8",
        f'{file}:baseline: note: spec.pod.labels[true]: YAML reads the key on as true; quote it: "on"',
    ]


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_programs_get_everything_as_one_object(file: Path, capsys: pytest.CaptureFixture[str], form: str) -> None:
    file.write_text(f"a: [\n---\n{INVALID}---\n{DEPLOYMENT}---\n{WITHOUT_STORE}")

    assert main(["validate", str(file), "missing.yaml", "-o", form]) == 2
    said = yaml.safe_load(capsys.readouterr().out)
    assert [(each["name"], each["result"], len(each["findings"]), len(each["notes"])) for each in said["objects"]] == [
        ("broken", "invalid", 2, 0),
        ("web", "skipped", 0, 0),
        ("baseline", "valid", 0, 1),
    ]
    assert said["objects"][0]["findings"][1] == {"path": "spec.replicas", "message": "must be at most 64; it is 65"}
    assert said["objects"][0]["line"] == 3
    assert said["objects"][2]["notes"][0]["reason"] == "StorageRequired"
    assert [(each["file"], each.get("line")) for each in said["unreadable"]] == [(str(file), 2), ("missing.yaml", None)]

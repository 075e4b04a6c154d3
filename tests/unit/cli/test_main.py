from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from typing import TYPE_CHECKING

import pytest

from specdec_operator.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

SPECDEC = [sys.executable, "-m", "specdec_operator.cli"]
MODEL = """\
apiVersion: specdec.dev/v1alpha1
kind: SpeculativeModel
metadata: {name: baseline}
spec:
  target: {source: {huggingFace: {repository: a/b}}}
  speculation: {method: None}
  storage: {claimName: store}
"""


def test_the_version_is_the_package_s(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"specdec {metadata.version('specdec-operator')}\n"


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["validate", "--help"], ["render", "-h"]])
def test_help_fits_a_terminal_of_80_columns(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    assert max(len(line) for line in capsys.readouterr().out.splitlines()) <= 80


@pytest.mark.parametrize("command", ["validate", "render"])
def test_the_help_of_a_command_tells_its_exit_codes(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    main([command, "--help"])

    assert "Exit codes: 0" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["valdate"], ["validate", "--fil=a"], ["render", "-o", "xml", "a"]])
def test_a_command_line_that_is_not_understood_exits_with_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err.startswith("Usage: specdec")


def test_a_command_that_is_nearly_one_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["valdate"]) == 2
    assert "Did you mean validate?" in capsys.readouterr().err


def test_what_would_steer_the_terminal_is_written_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "model.yaml"
    file.write_text(MODEL.replace("baseline", '"a\\u001b[31m\\u0007\\u009b"'))

    assert main(["validate", str(file)]) == 1
    assert capsys.readouterr().out.startswith(f"{file}:a\\x1b[31m\\x07\\x9b: metadata.name: ")


def test_no_command_shows_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    said = capsys.readouterr()
    assert "validate" in said.out + said.err


def test_the_help_imports_nothing_of_the_commands() -> None:
    program = (
        "import sys; from specdec_operator.cli.main import main; code = main(['--help']); "
        "heavy = {'pydantic', 'yaml', 'jinja2'} & set(sys.modules); sys.exit(f'imported {heavy}' if heavy else code)"
    )

    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize("arguments", [["validate"], ["render"], ["render", "-o", "json"]])
def test_a_reader_that_goes_away_is_not_an_error(arguments: list[str], tmp_path: Path) -> None:
    file = tmp_path / "models.yaml"
    file.write_text("---\n".join(MODEL.replace("baseline", f"model-{index}") for index in range(60)))
    with subprocess.Popen(
        [*SPECDEC, *arguments, str(file)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()

        assert "Traceback" not in process.stderr.read()
        assert "Exception" not in process.stderr.read()


def test_a_full_disk_is_said() -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:  # noqa: PTH123  no file of a path
        done = subprocess.run(
            [*SPECDEC, "validate", "-"], input=MODEL, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )

    assert (done.returncode, done.stderr) == (2, "the output can't be written: No space left on device\n")


def test_output_is_utf_8_in_any_language(tmp_path: Path) -> None:
    file = tmp_path / "grüße.yaml"
    file.write_text(MODEL.replace("baseline", "grüß"))
    done = subprocess.run(
        [*SPECDEC, "validate", str(file)],
        env={"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        check=False,
    )

    assert done.returncode == 1
    assert "grüße.yaml:grüß: metadata.name: " in done.stdout.decode()


@pytest.mark.parametrize("text", ["[" * 100_000, "a: " + "[" * 5000 + "]" * 5000, "a: &a [*a]", "? " * 50_000])
@pytest.mark.parametrize("option", [["--configuration"], ["--facts"]])
def test_a_file_that_is_nested_too_deeply_is_an_error(*, text: str, option: list[str], tmp_path: Path) -> None:
    manifest, other = tmp_path / "model.yaml", tmp_path / "other.yaml"
    manifest.write_text(MODEL)
    other.write_text(text)
    done = subprocess.run(
        [*SPECDEC, "render", str(manifest), *option, str(other)], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"{other}:1: ")
    assert len(done.stderr.splitlines()) == 1

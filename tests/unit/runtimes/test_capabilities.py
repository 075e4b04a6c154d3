from __future__ import annotations

from typing import TYPE_CHECKING

from specdec_operator.api.v1alpha1.speculation import METHODS
from specdec_operator.runtimes.capabilities import page
from specdec_operator.runtimes.generate import main
from specdec_operator.runtimes.table import load_table

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

PAGE = page(load_table())


def test_the_page_names_every_method_on_every_backend() -> None:
    rows = [f"| `{method}` | `{backend}` |" for method in METHODS for backend in ("LLMAPI", "TensorRTEngine", "VLLM")]

    assert not [row for row in rows if PAGE.count(row) != 1]


def test_the_page_names_every_release_with_what_is_inside() -> None:
    assert not [release.name for release in load_table().releases if PAGE.count(f"\n| {release.name} |") < 2]


def test_a_refused_method_comes_with_what_to_use() -> None:
    row = next(line for line in PAGE.splitlines() if line.startswith("| `Medusa` | `LLMAPI` |"))

    assert row == (
        "| `Medusa` | `LLMAPI` | refused |  |  | the LLM API has no MEDUSA; use `Medusa` on `TensorRTEngine`, or "
        "`Medusa` on `VLLM`, or `Eagle3` on `LLMAPI` with a head made for EAGLE-3 |"
    )


def test_a_method_that_some_releases_lack_is_shown_with_since_and_until() -> None:
    row = next(line for line in PAGE.splitlines() if line.startswith("| `DraftTarget` | `VLLM` |"))

    assert "| 25.01 to 25.08, 26.02 to 26.08 | 26.08 | 5 |" in row
    assert "not 25.09 to 26.01: vLLM 0.10 to 0.14 drafts with no model of its own" in row


def test_a_backend_with_a_blocking_defect_is_in_brackets() -> None:
    row = next(line for line in PAGE.splitlines() if line.startswith("| 26.07 |"))

    assert row.upper() == "| 26.07 | E V |  | (L) V | E V | (L) E V | (L) V | E | E | (L) V | (L) E V |"


def test_a_mark_tells_what_was_read_inferred_and_run() -> None:
    vllm = {"image": "registry.example.com/v:1", "version": "0.19.0", "methods": ["NGram"]}
    engine = {"methods": ["Eagle"], "evidence": "Inferred"}
    row = {"name": "27.01", "image": "registry.example.com/t:1", "tensorrtLLM": "1.2.1", "source": "a test"}
    known = {"TensorRTEngine": engine, "VLLM": {**vllm, "evidence": "Read", "runWith": "an L40S"}}
    shown = page(load_table([{**row, **known}]))

    assert "\n| 27.01 | e |  |  |  |  | V* |  |  |  |  |\n" in shown
    assert "1 run (an L40S).\n" in shown


def test_the_page_is_written_and_then_current(tmp_path: Path) -> None:
    output = tmp_path / "docs" / "capabilities.md"

    assert main(["--output", str(output)]) == 0
    assert main(["--output", str(output), "--check"]) == 0


def test_a_page_that_is_not_current_is_shown_with_the_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "capabilities.md"
    output.write_text("old\n", encoding="utf-8")

    assert main(["--output", str(output), "--check"]) == 1
    assert "-old\n" in (said := capsys.readouterr().err)
    assert "run `make generate`" in said

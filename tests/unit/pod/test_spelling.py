"""Spellings that only the image knows."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from specdec_operator.pod.assemble import assemble
from specdec_operator.pod.inputs import AssembleInput, ModelTemplate, SpellingProbe
from specdec_operator.pod.spelling import probe_spelling

if TYPE_CHECKING:
    from tests.unit.pod.tools import Image

PACKAGES = Path(__file__).parents[3] / "testbed/runtime/image/root/usr/local/lib/python3.11/dist-packages"
DICTIONARY = """
class Base:
    @classmethod
    def from_dict(cls, data):
        config_classes = {"Eagle": Eagle, "DraftTarget": DraftTargetDecodingConfig}
        return config_classes[data["decoding_type"]]()

class DraftTargetDecodingConfig(Base):
    decoding_type: ClassVar[str] = "Draft_Target"
"""
LITERAL = """
class DraftTargetDecodingConfig(DecodingBaseConfig):
    decoding_type: Literal["Draft_Target"] = "Draft_Target"
"""
NEITHER = """
class DraftTargetDecodingConfig(DecodingBaseConfig):
    decoding_type: ClassVar[str] = "Draft_Target"
"""


def probe(**changes: str) -> SpellingProbe:
    given = {
        "name": "draft_target",
        "module": "tensorrt_llm.llmapi.llm_args",
        "dictionary": "config_classes",
        "class_name": "DraftTargetDecodingConfig",
        "field": "decoding_type",
        "expected": "DraftTarget",
        **changes,
    }
    return SpellingProbe(**given)


def source(image: Image, text: str) -> None:
    image.tensorrt_llm("1.2.1")
    inner = image.directory / "tensorrt_llm" / "llmapi"
    inner.mkdir()
    (inner / "__init__.py").write_text("raise ImportError('libcuda.so.1')\n")
    (inner / "llm_args.py").write_text(text)


def test_the_simulator_s_parser_key_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(PACKAGES))

    assert probe_spelling(probe(expected="Draft_Target")).text == "DraftTarget"


@pytest.mark.parametrize(
    ("text", "spelling"),
    [
        (DICTIONARY, "DraftTarget"),
        (LITERAL, "Draft_Target"),
        (LITERAL.replace("Literal[", "ClassVar[typing.Literal[").replace('"] =', '"]] ='), "Draft_Target"),
        (DICTIONARY.replace("config_classes =", "config_classes: dict[str, type] ="), "DraftTarget"),
        (DICTIONARY.replace(": DraftTargetDecoding", ": llm_args.DraftTargetDecoding"), "DraftTarget"),
    ],
)
def test_the_image_s_spelling_wins_over_the_row_s(container: Image, text: str, spelling: str) -> None:
    source(container, text)

    assert probe_spelling(probe(expected="Other")).text == spelling


def test_a_dictionary_wins_over_a_literal(container: Image) -> None:
    source(container, DICTIONARY + LITERAL.replace("Draft_Target", "Unused"))

    assert probe_spelling(probe(expected="Other")).text == "DraftTarget"


def test_a_mismatch_is_said(container: Image) -> None:
    source(container, LITERAL)

    assert "spells it Draft_Target, the release's row says DraftTarget" in probe_spelling(probe()).note


def test_a_confirmed_spelling_is_no_news(container: Image) -> None:
    source(container, LITERAL.replace('"Draft_Target"]', '"Draft_Target", "DraftTarget"]'))

    assert (probe_spelling(probe()).text, probe_spelling(probe()).note) == ("DraftTarget", "")


@pytest.mark.parametrize("text", [NEITHER, "", "class Broken(:\n", "\0"])
def test_a_source_that_does_not_tell_leaves_the_row_s_spelling_and_says_so(container: Image, text: str) -> None:
    source(container, text)
    found = probe_spelling(probe())

    assert (found.text, "DraftTarget is taken" in found.note) == ("DraftTarget", True)


def test_an_image_without_the_package_leaves_the_row_s_spelling(container: Image) -> None:
    assert container.directory.is_dir()
    assert probe_spelling(probe(module="no_such_package.inner")).text == "DraftTarget"


def test_nothing_is_imported(container: Image) -> None:
    source(container, LITERAL)
    probe_spelling(probe())

    assert not [name for name in sys.modules if name.startswith("tensorrt_llm.llmapi")]


def test_the_spelling_reaches_the_model_s_files(container: Image, tmp_path: Path) -> None:
    source(container, LITERAL)
    given: dict[str, Any] = {"fields": {"backend": "python"}, "probes": (probe(),)}
    template = ModelTemplate(name="m", files={"1/model.yaml": "decoding_type: ${draft_target}\n"}, **given)
    result = assemble(AssembleInput(output=str(tmp_path / "out"), models=(template,), revision_model="m"))

    assert (tmp_path / "out/m/1/model.yaml").read_text() == "decoding_type: Draft_Target\n"
    assert len(result["notes"]) == 1

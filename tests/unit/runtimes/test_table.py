from __future__ import annotations

from typing import Any

import pytest

from specdec_operator.runtimes.table import CapabilityTable, TableError, load_table

ROW: dict[str, Any] = {
    "name": "27.01",
    "image": "registry.example.com/triton:1",
    "tensorrtLLM": "1.3.0",
    "LLMAPI": {"methods": ["Eagle3", "None"]},
    "source": "a test",
}
VLLM = {"image": "registry.example.com/vllm:1", "version": "0.28.0", "methods": ["None"]}
DEFECT = {"id": "broken", "backends": ["LLMAPI"], "remedy": "take another"}


def test_releases_are_in_their_order() -> None:
    names = [release.name for release in load_table().releases]

    assert names == sorted(names)


@pytest.mark.parametrize("release", load_table().releases, ids=lambda release: release.name)
def test_every_shipped_row_names_its_source(release: Any) -> None:
    assert "Dockerfile" in release.source


def test_a_configured_row_is_added() -> None:
    found = load_table([ROW]).find("27.01")

    assert found is not None
    assert found.image == "registry.example.com/triton:1"


def test_a_configured_row_takes_the_place_of_a_shipped_one() -> None:
    table = load_table([{**ROW, "name": "26.02"}])

    assert [r.image for r in table.releases if r.name == "26.02"] == ["registry.example.com/triton:1"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"image": None}, r"release 27\.01: image"),
        ({"tensorrtLLM": "newest"}, r"release 27\.01: tensorrtLLM"),
        ({"LLMAPI": {"methods": ["Magic"]}}, r"release 27\.01: LLMAPI\.methods\.0"),
        ({"colour": "red"}, r"release 27\.01: colour"),
        ({"defects": [{**DEFECT, "backends": []}]}, r"release 27\.01: defects\.0\.backends"),
    ],
)
def test_a_wrong_row_is_named_with_its_field(change: dict[str, Any], said: str) -> None:
    with pytest.raises(TableError, match=said):
        load_table([{**ROW, **change}])


def test_a_row_without_a_name_is_refused() -> None:
    with pytest.raises(TableError, match=r"release \?: name"):
        load_table([{key: value for key, value in ROW.items() if key != "name"}])


def test_the_default_is_the_newest_release() -> None:
    default = load_table([ROW]).default("LLMAPI", "Eagle3")

    assert default is not None
    assert default.name == "27.01"


@pytest.mark.parametrize(
    "change",
    [{"defects": [DEFECT]}, {"LLMAPI": {"methods": ["None"]}}, {"simulator": True}, {"LLMAPI": None, "VLLM": VLLM}],
)
def test_a_release_that_can_not_serve_is_no_default(change: dict[str, Any]) -> None:
    default = load_table([{**ROW, **change}]).default("LLMAPI", "Eagle3")

    assert default is not None
    assert default.name == "26.02"


def test_a_defect_that_does_not_block_keeps_a_release_the_default() -> None:
    default = load_table([{**ROW, "defects": [{**DEFECT, "blocking": False}]}]).default("LLMAPI", "Eagle3")

    assert default is not None
    assert default.name == "27.01"


def test_a_table_without_a_fitting_release_has_no_default() -> None:
    assert CapabilityTable(()).default("LLMAPI", "Eagle3") is None


def test_a_backend_that_a_release_lacks_serves_no_method() -> None:
    found = load_table([ROW]).find("27.01")

    assert found is not None
    assert found.methods("TensorRTEngine") == ()


def test_releases_are_found_by_what_they_serve() -> None:
    assert load_table([ROW]).with_method("TensorRTEngine", "DraftTarget")[-1] == "26.07"

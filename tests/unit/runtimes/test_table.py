from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from specdec_operator.pod.driver import DriverFloor
from specdec_operator.runtimes.table import CapabilityTable, TableError, load_table

if TYPE_CHECKING:
    from specdec_operator.api.v1alpha1.runtime import Backend
    from specdec_operator.api.v1alpha1.speculation import Method

BACKENDS: tuple[Backend, ...] = ("LLMAPI", "TensorRTEngine", "VLLM")

ROW: dict[str, Any] = {
    "name": "27.01",
    "image": "registry.example.com/triton:1",
    "tensorrtLLM": "1.3.0",
    "LLMAPI": {"methods": ["Eagle3", "None"]},
    "source": "a test",
}
VLLM = {"image": "registry.example.com/vllm:1", "version": "0.28.0", "methods": ["None"]}
DEFECT = {"id": "broken", "backends": ["LLMAPI"], "remedy": "take another"}


def shipped(row: dict[str, Any]) -> CapabilityTable:
    """The table as if a row came with the operator."""
    return CapabilityTable(load_table([row]).releases)


def test_releases_are_in_their_order() -> None:
    names = [release.name for release in load_table().releases]

    assert names == sorted(names)


@pytest.mark.parametrize("release", load_table().releases, ids=lambda release: release.name)
def test_every_shipped_row_names_its_source(release: Any) -> None:
    assert "compatibility table" in release.source


@pytest.mark.parametrize("release", load_table().releases, ids=lambda release: release.name)
def test_the_images_of_a_shipped_row_carry_its_tag(release: Any) -> None:
    backends = [backend for backend in BACKENDS if release.support(backend)]
    tags = {release.image_for(backend).rpartition(":")[2].split("-")[0] for backend in backends}

    assert tags == {release.name}


def test_a_row_like_another_says_only_what_differs() -> None:
    row = {"name": "26.04-fixed", "like": "26.04", "image": "registry.example.com/triton:1", "defects": []}
    found = load_table([{**row, "source": "a test"}]).find("26.04-fixed")

    assert found is not None
    assert (found.tensorrt_llm, found.image, found.defects) == ("1.2.1", "registry.example.com/triton:1", [])


def test_evidence_is_of_the_row_that_states_it_alone() -> None:
    row = {"name": "26.04-own", "like": "26.04", "source": "a test"}
    found = load_table([row]).find("26.04-own")

    assert found is not None
    assert {part.evidence for backend in BACKENDS if (part := found.support(backend))} == {None}


@pytest.mark.parametrize("release", load_table().releases, ids=lambda release: release.name)
def test_a_shipped_row_states_its_evidence_for_each_backend(release: Any) -> None:
    assert None not in [support.evidence for backend in BACKENDS if (support := release.support(backend))]


def test_a_map_of_a_row_is_joined_with_that_of_the_row_it_is_like() -> None:
    row = {"name": "26.04-own", "like": "26.04", "LLMAPI": {"template": ["/own"]}, "source": "a test"}
    found = load_table([row]).find("26.04-own")

    assert found is not None
    assert found.llm_api is not None
    assert (found.llm_api.template, found.llm_api.draft_target_decoding_type) == (["/own"], "Draft_Target")


def test_null_removes_what_a_row_would_take_from_another() -> None:
    row = {"name": "26.04-own", "like": "26.04", "TensorRTEngine": None, "source": "a test"}
    found = load_table([row]).find("26.04-own")

    assert found is not None
    assert found.support("TensorRTEngine") is None


def test_a_row_does_not_inherit_a_source() -> None:
    with pytest.raises(TableError, match=r"release 26\.04-own: source"):
        load_table([{"name": "26.04-own", "like": "26.04"}])


def test_a_row_like_one_that_does_not_come_before_it_is_refused() -> None:
    with pytest.raises(TableError, match=r"release 27\.01: like: 27\.02 is in no row before this one"):
        load_table([{**ROW, "like": "27.02"}])


def test_a_configured_row_may_change_a_part_of_the_shipped_one() -> None:
    row = {"name": "26.02", "like": "26.02", "image": "registry.example.com/triton:1", "source": "a test"}
    found = load_table([row]).find("26.02")

    assert found is not None
    assert (found.image, found.tensorrt_llm) == ("registry.example.com/triton:1", "1.1.0")


@pytest.mark.parametrize("part", ["image", "tensorrtLLM"])
def test_a_row_with_a_backend_of_tensorrt_llm_says_what_it_needs(part: str) -> None:
    with pytest.raises(TableError, match=rf"release 27\.01: {part}: missing: LLMAPI needs it"):
        load_table([{key: value for key, value in ROW.items() if key != part}])


def test_a_row_without_any_backend_is_refused() -> None:
    with pytest.raises(TableError, match="LLMAPI, TensorRTEngine or VLLM: missing"):
        load_table([{"name": "27.01", "source": "a test"}])


def test_each_backend_has_its_own_image_version_and_driver() -> None:
    found = load_table().find("26.07")

    assert found is not None
    assert [(found.version_for(backend), found.driver_floor(backend).data_center[-1]) for backend in BACKENDS] == [
        ("1.2.1", "575"),
        ("1.2.1", "575"),
        ("0.24.0", "570"),
    ]


def test_a_row_s_own_drivers_stand_in_place_of_those_of_its_cuda() -> None:
    row = {"name": "26.04", "like": "26.04", "minimumDriver": "590.44.01", "dataCenterDrivers": [], "source": "a test"}
    found = load_table([row]).find("26.04")

    assert found is not None
    assert found.driver_floor("LLMAPI") == DriverFloor(minimum="590.44.01", source="the row of release 26.04")


def test_a_release_without_an_image_for_a_backend_has_none_to_name() -> None:
    found = load_table().find("26.08")

    assert found is not None
    assert not found.has_image_for("LLMAPI")
    with pytest.raises(KeyError):
        found.image_for("LLMAPI")


def test_a_disputed_version_is_not_asked_of_an_image() -> None:
    table = load_table()
    required = {name: release.required_tensorrt_llm for name in ("26.02", "26.03") if (release := table.find(name))}

    assert required == {"26.02": "1.1.0", "26.03": ""}


@pytest.mark.parametrize(
    ("release", "method", "environment"),
    [
        ("25.08", "Eagle3", {"VLLM_USE_V1": "1"}),
        ("25.08", "Eagle", {}),
        ("25.09", "NGram", {"VLLM_USE_V1": "1"}),
        ("25.10", "Eagle3", {}),
    ],
)
def test_vllm_is_told_which_engine_to_run_where_triton_would_choose_the_old_one(
    release: str, method: Method, environment: dict[str, str]
) -> None:
    found = load_table().find(release)

    assert found is not None
    assert found.vllm is not None
    assert found.vllm.environment_for(method) == environment


@pytest.mark.parametrize(
    ("release", "spelling"),
    [("25.08", "pytorch_weights_path"), ("25.09", "speculative_model_dir"), ("26.07", "speculative_model_dir")],
)
def test_the_draft_s_key_is_the_release_s(release: str, spelling: str) -> None:
    found = load_table().find(release)

    assert found is not None
    assert found.llm_api is not None
    assert found.llm_api.draft_model_key == spelling


@pytest.mark.parametrize(("release", "spelling"), [("25.04", "Flat"), ("25.05", "Nested")])
def test_vllm_s_configuration_is_nested_from_0_8_3_on(release: str, spelling: str) -> None:
    found = load_table().find(release)

    assert found is not None
    assert found.vllm is not None
    assert found.vllm.configuration == spelling


@pytest.mark.parametrize("release", [r for r in load_table().releases if r.tensorrt_engine], ids=lambda r: r.name)
def test_the_converter_is_looked_for_in_both_of_its_places(release: Any) -> None:
    assert release.tensorrt_engine.converters["llama"] == [
        "/app/examples/models/core/llama/convert_checkpoint.py",
        "/app/examples/llama/convert_checkpoint.py",
    ]


def test_releases_in_a_row_are_named_by_their_ends() -> None:
    assert load_table().serving("VLLM", "DraftTarget") == "25.01 to 25.08, 26.02 to 26.08"


def test_a_stand_in_is_not_named_among_releases() -> None:
    table = load_table([{**ROW, "simulator": True}])

    assert table.serving("LLMAPI", "Eagle3") == "25.06 to 26.07"


def test_a_defect_of_one_method_leaves_others_alone() -> None:
    table = load_table([{**ROW, "defects": [{**DEFECT, "methods": ["Eagle3"]}]}])
    found = table.find("27.01")

    assert found is not None
    assert found.blocking_defect("LLMAPI", "Eagle3") is not None
    assert found.blocking_defect("LLMAPI", "None") is None


@pytest.mark.parametrize(
    ("backend", "method", "release"),
    [
        ("LLMAPI", "Eagle3", "26.02"),
        ("TensorRTEngine", "Medusa", "26.07"),
        ("VLLM", "DraftTarget", "26.08"),
    ],
)
def test_the_default_release_is_the_newest_that_is_whole(backend: Backend, method: Method, release: str) -> None:
    default = load_table().default(backend, method)

    assert default is not None
    assert default.name == release


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
        ({"LLMAPI": {"methods": ["Magic"]}}, r"release 27\.01: LLMAPI\.methods\[0\]"),
        ({"colour": "red"}, r"release 27\.01: colour"),
        ({"defects": [{**DEFECT, "backends": []}]}, r"release 27\.01: defects\[0\]\.backends"),
    ],
)
def test_a_wrong_row_is_named_with_its_field(change: dict[str, Any], said: str) -> None:
    with pytest.raises(TableError, match=said):
        load_table([{**ROW, **change}])


def test_a_row_without_a_name_is_refused() -> None:
    with pytest.raises(TableError, match=r"release \?: name"):
        load_table([{key: value for key, value in ROW.items() if key != "name"}])


def test_the_default_is_the_newest_release() -> None:
    default = shipped(ROW).default("LLMAPI", "Eagle3")

    assert default is not None
    assert default.name == "27.01"


def test_a_row_that_the_configuration_adds_is_no_default() -> None:
    default = load_table([{**ROW, "name": "26.02-own"}, ROW]).default("LLMAPI", "Eagle3")

    assert default is not None
    assert default.name == "26.02"


def test_a_row_that_takes_a_shipped_one_s_place_may_be_the_default() -> None:
    mended = {"name": "26.07", "like": "26.07", "defects": [], "source": "a test"}
    default = load_table([mended]).default("LLMAPI", "Eagle3")

    assert default is not None
    assert default.name == "26.07"


def test_an_image_is_stock_with_the_version_that_a_shipped_row_says() -> None:
    image = "nvcr.io/nvidia/tritonserver:26.04-trtllm-python-py3"
    table = load_table([{**ROW, "name": "26.04"}])

    assert [table.is_stock(image, "1.2.1"), table.is_stock(image, "1.3.0"), table.is_stock(ROW["image"], "1.3.0")] == [
        True,
        False,
        False,
    ]


@pytest.mark.parametrize(
    "change",
    [{"defects": [DEFECT]}, {"LLMAPI": {"methods": ["None"]}}, {"simulator": True}, {"LLMAPI": None, "VLLM": VLLM}],
)
def test_a_release_that_can_not_serve_is_no_default(change: dict[str, Any]) -> None:
    default = shipped({**ROW, **change}).default("LLMAPI", "Eagle3")

    assert default is not None
    assert default.name == "26.02"


def test_a_defect_that_does_not_block_keeps_a_release_the_default() -> None:
    default = shipped({**ROW, "defects": [{**DEFECT, "blocking": False}]}).default("LLMAPI", "Eagle3")

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

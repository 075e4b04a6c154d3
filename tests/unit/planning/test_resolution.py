from __future__ import annotations

from typing import Any

import pytest

from specdec_operator.api.configuration import OperatorConfiguration
from specdec_operator.api.v1alpha1.speculative_model import default_backend
from specdec_operator.planning.refusal import Refused
from specdec_operator.planning.resolution import Resolution, needs_store, resolve
from specdec_operator.runtimes.table import CapabilityTable, load_table
from tests.unit.specs import BASELINE, BASELINE_ENGINE, CONFIGURATION, DRAFT_TARGET, EAGLE3, TABLE, model

CLAIM = {"persistentVolumeClaim": {"claimName": "models"}}


def resolved(spec: dict[str, Any], *, table: CapabilityTable = TABLE, **changes: Any) -> Resolution:
    return resolve(model(spec, **changes).spec, table=table, configuration=CONFIGURATION)


def reasons(spec: dict[str, Any], *, configuration: OperatorConfiguration = CONFIGURATION, **changes: Any) -> list[str]:
    with pytest.raises(Refused) as refused:
        resolve(model(spec, **changes).spec, table=TABLE, configuration=configuration)
    return [refusal.reason for refusal in refused.value.refusals]


@pytest.mark.parametrize(
    ("spec", "backend"), [(EAGLE3, "LLMAPI"), (BASELINE, "LLMAPI"), (DRAFT_TARGET, "TensorRTEngine")]
)
def test_a_method_has_its_own_backend(spec: dict[str, Any], backend: str) -> None:
    assert default_backend(model(spec, runtime=None).spec) == backend


def test_the_newest_release_without_a_blocking_defect_is_taken() -> None:
    assert resolved(EAGLE3).release.name == "26.02"


def test_the_choice_of_a_release_is_pinned_with_its_reason() -> None:
    (pin,) = resolved(EAGLE3).pins

    assert (pin.name, pin.value) == ("runtime.release", "26.02")
    assert "newest release" in pin.reason


def test_a_named_release_needs_no_pin() -> None:
    assert resolved(EAGLE3, runtime={"release": "25.10"}).pins == ()


def test_the_configured_release_goes_before_the_newest() -> None:
    configuration = OperatorConfiguration.model_validate({"defaultReleases": {"LLMAPI": "25.10"}})
    resolution = resolve(model(EAGLE3).spec, table=TABLE, configuration=configuration)

    assert (resolution.release.name, resolution.pins[0].reason) == (
        "25.10",
        "the operator's default for this backend",
    )


def test_a_pin_is_kept_when_a_newer_release_comes() -> None:
    first = resolved(EAGLE3)
    newer = CapabilityTable(load_table([{**_row(), "name": "27.01"}]).releases)
    again = resolve(model(EAGLE3).spec, table=newer, configuration=CONFIGURATION, pins=first.pins)

    assert (again.release.name, again.pins) == ("26.02", first.pins)


@pytest.mark.parametrize(
    "changes",
    [
        {"speculation": {"method": "None"}, "draft": None},
        {"runtime": {"image": {"reference": "registry.example.com/triton:1"}}},
        {"runtime": {"release": "25.10"}},
    ],
)
def test_a_pin_goes_when_a_field_that_governs_it_changes(changes: dict[str, Any]) -> None:
    first = resolved(EAGLE3)
    newer = CapabilityTable(load_table([{**_row(), "name": "27.01"}]).releases)
    again = resolve(model(EAGLE3, **changes).spec, table=newer, configuration=CONFIGURATION, pins=first.pins)

    assert again.release.name != first.release.name


@pytest.mark.parametrize(
    "changes", [{"replicas": 2}, {"serving": {"maxBatchSize": 2}}, {"pod": {"labels": {"a": "b"}}}]
)
def test_a_pin_stays_when_another_field_changes(changes: dict[str, Any]) -> None:
    first = resolved(EAGLE3)
    newer = CapabilityTable(load_table([{**_row(), "name": "27.01"}]).releases)
    again = resolve(model(EAGLE3, **changes).spec, table=newer, configuration=CONFIGURATION, pins=first.pins)

    assert again.release.name == first.release.name


def test_a_refresh_resolves_anew() -> None:
    first = resolved(EAGLE3)
    newer = CapabilityTable(load_table([{**_row(), "name": "27.01"}]).releases)
    again = resolve(model(EAGLE3).spec, table=newer, configuration=CONFIGURATION, pins=first.pins, refresh="1")

    assert again.release.name == "27.01"


def test_a_defect_that_becomes_known_later_stops_no_pinned_model() -> None:
    first = resolved(EAGLE3)
    defect = {"id": "broken", "backends": ["LLMAPI"], "remedy": "take another"}
    later = load_table([{**_row(), "name": "26.02", "defects": [defect]}])
    again = resolve(model(EAGLE3).spec, table=later, configuration=CONFIGURATION, pins=first.pins)

    assert again.release.name == "26.02"


def test_a_pinned_release_that_is_in_no_row_any_more_is_chosen_anew() -> None:
    first = resolved(EAGLE3)
    shrunk = CapabilityTable(tuple(release for release in TABLE.releases if release.name < "26.02"))
    again = resolve(model(EAGLE3).spec, table=shrunk, configuration=CONFIGURATION, pins=first.pins)

    assert again.release.name == "26.01"


def test_a_row_of_the_configuration_moves_no_model_that_names_no_release() -> None:
    table = load_table([{**_row(), "name": "27.01"}])
    resolution = resolved(EAGLE3, table=table)

    assert resolution.release.name == "26.02"
    assert "27.01 (added by the configuration, and taken where it is named)" in resolution.pins[0].reason


def test_a_row_of_the_configuration_is_the_default_where_it_is_named_so() -> None:
    configuration = OperatorConfiguration.model_validate({"defaultReleases": {"LLMAPI": "27.01"}})
    table = load_table([{**_row(), "name": "27.01"}])

    assert resolve(model(EAGLE3).spec, table=table, configuration=configuration).release.name == "27.01"


def test_a_method_that_only_rows_of_the_configuration_serve_asks_for_a_name() -> None:
    table = load_table([{**_row(), "name": "27.01"}])
    only = CapabilityTable(table.releases[-1:], added=table.added)

    with pytest.raises(Refused, match=r"added by the operator's configuration: name one in runtime\.release or in its"):
        resolved(EAGLE3, table=only)


def test_an_unknown_release_is_refused() -> None:
    assert reasons(EAGLE3, runtime={"release": "99.01"}) == ["ReleaseUnknown"]


def test_a_stock_image_with_a_blocking_defect_is_refused() -> None:
    assert reasons(EAGLE3, runtime={"release": "26.04"}) == ["ReleaseDefect"]


def test_a_mended_image_of_such_a_release_is_taken() -> None:
    image = {"reference": "registry.example.com/triton:mended"}

    assert resolved(EAGLE3, runtime={"release": "26.04", "image": image}).image.reference == image["reference"]


def test_a_defect_of_one_backend_does_not_stop_another() -> None:
    assert resolved(BASELINE_ENGINE).release.name == "26.04"


def test_a_method_that_the_release_lacks_is_refused_with_those_that_have_it() -> None:
    table = load_table([{**_row(), "name": "27.01", "LLMAPI": {"methods": ["None"]}}])

    with pytest.raises(
        Refused, match=r"27\.01 \(TensorRT-LLM 1\.3\.0\) does not serve Eagle3 on LLMAPI; use release 25\.06 to 26\.02"
    ):
        resolved(EAGLE3, table=table, runtime={"release": "27.01"})


def test_engines_need_a_gpu_product() -> None:
    assert reasons(BASELINE_ENGINE, placement=None) == ["GpuProductRequired"]


def test_the_operator_s_gpu_product_is_taken_where_none_is_declared() -> None:
    configuration = OperatorConfiguration(gpu_product="NVIDIA-A10")
    made = model(BASELINE_ENGINE, placement=None)

    assert resolve(made.spec, table=TABLE, configuration=configuration).gpu_product == "NVIDIA-A10"


def test_what_is_downloaded_needs_a_store() -> None:
    assert reasons(EAGLE3, storage=None) == ["StorageRequired"]


def test_what_a_claim_holds_and_nothing_builds_needs_no_store() -> None:
    resolution = resolved(BASELINE, target={"source": CLAIM}, storage=None)

    assert (resolution.storage, resolution.store_claim) == (None, None)


def test_a_built_engine_needs_a_store_wherever_the_model_is() -> None:
    assert needs_store(model(BASELINE_ENGINE, target={"source": CLAIM}).spec, "TensorRTEngine")


def test_nothing_is_stored_of_a_model_and_an_engine_that_claims_hold() -> None:
    engine = {"prebuilt": {"target": {"claimName": "engines"}}}

    assert not needs_store(model(BASELINE_ENGINE, target={"source": CLAIM}, engine=engine).spec, "TensorRTEngine")


@pytest.mark.parametrize(
    ("storage", "claim"), [({"claimName": "mine"}, "mine"), ({"claim": {"size": "1Gi"}}, "specdec-store")]
)
def test_the_store_is_a_claim(storage: dict[str, Any], claim: str) -> None:
    assert resolved(EAGLE3, storage=storage).store_claim == claim


def test_everything_that_is_missing_is_said_at_once() -> None:
    assert reasons(BASELINE_ENGINE, placement=None, storage=None) == ["GpuProductRequired", "StorageRequired"]


def test_the_reason_of_a_pin_tells_what_is_inside_and_what_was_passed_over() -> None:
    (pin,) = resolved(EAGLE3).pins

    assert pin.reason == (
        "the newest release that serves Eagle3 on LLMAPI without a known blocking defect (TensorRT-LLM 1.1.0); passed "
        "over: 26.03 (openai-package-too-old), 26.04 (openai-package-too-old), 26.05 (openai-package-too-old), 26.06 "
        "(openai-package-too-old), 26.07 (openai-package-too-old), 26.08 (no image)"
    )


def test_the_image_is_the_backend_s_own() -> None:
    resolution = resolved(BASELINE, runtime={"backend": "VLLM"})

    assert (resolution.release.name, resolution.image.reference) == (
        "26.08",
        "nvcr.io/nvidia/tritonserver:26.08-vllm-python-py3",
    )


def test_an_unknown_default_of_the_operator_is_refused() -> None:
    configuration = OperatorConfiguration.model_validate({"defaultReleases": {"VLLM": "99.01"}})

    assert reasons(BASELINE, configuration=configuration, runtime={"backend": "VLLM"}) == ["ReleaseUnknown"]


def test_a_method_that_only_defective_releases_serve_has_no_default() -> None:
    defect = {"id": "broken", "backends": ["LLMAPI"], "remedy": "take another"}
    table = CapabilityTable(load_table([{**_row(), "name": "27.01", "defects": [defect]}]).releases[-1:])

    with pytest.raises(Refused, match=r"every release that serves Eagle3 on LLMAPI \(27\.01\) is a stand-in or has"):
        resolved(EAGLE3, table=table)


@pytest.mark.parametrize(("spec", "tokens"), [(EAGLE3, 3), (BASELINE, 0)])
def test_a_method_has_its_own_number_of_drafted_tokens(spec: dict[str, Any], tokens: int) -> None:
    assert resolved(spec).draft_tokens == tokens


def test_a_declared_number_of_drafted_tokens_is_taken() -> None:
    assert resolved(EAGLE3, speculation__maxDraftTokens=5).draft_tokens == 5


def _row() -> dict[str, Any]:
    return {
        "image": "registry.example.com/triton:1",
        "tensorrtLLM": "1.3.0",
        "LLMAPI": {"methods": ["Eagle3", "None"]},
        "TensorRTEngine": {"methods": ["DraftTarget", "None"]},
        "source": "a test",
    }

"""What is known of the drivers of GPU nodes, and what follows for releases."""

from __future__ import annotations

from typing import Any

import pytest

from specdec_operator.api.configuration import OperatorConfiguration
from specdec_operator.planning.drivers import Drivers, known_drivers
from specdec_operator.planning.refusal import Refused
from specdec_operator.planning.resolution import Resolution, resolve
from tests.unit.specs import BASELINE_VLLM, CONFIGURATION, DRAFT_TARGET, PRODUCT, TABLE, model

RTX = "NVIDIA-GeForce-RTX-4090"


def configured(**fields: Any) -> OperatorConfiguration:
    return OperatorConfiguration.model_validate(fields)


def node(driver: str, product: str = PRODUCT, **labels: str) -> dict[str, str]:
    return {"nvidia.com/gpu.product": product, "nvidia.com/cuda.driver-version.full": driver, **labels}


def known(
    spec: dict[str, Any], *nodes: dict[str, str], configuration: OperatorConfiguration = CONFIGURATION
) -> Drivers:
    parsed = model(spec).spec
    product = parsed.placement.gpu.product
    return known_drivers(parsed, "VLLM", product=product, configuration=configuration, nodes=nodes)


def resolved(
    spec: dict[str, Any], *nodes: dict[str, str], configuration: OperatorConfiguration = CONFIGURATION, **changes: Any
) -> Resolution:
    return resolve(model(spec, **changes).spec, table=TABLE, configuration=configuration, nodes=nodes)


def refused(*nodes: dict[str, str], configuration: OperatorConfiguration = CONFIGURATION, **changes: Any) -> str:
    with pytest.raises(Refused) as caught:
        resolved(BASELINE_VLLM, *nodes, configuration=configuration, **changes)
    (refusal,) = caught.value.refusals
    assert (refusal.reason, refusal.path) == ("DriverTooOld", "spec.runtime.release")
    return refusal.message


def on_vllm(release: str | None = None, **runtime: str) -> dict[str, Any]:
    return {"runtime": {"backend": "VLLM", **({"release": release} if release else {}), **runtime}}


def test_nothing_is_known_without_nodes_and_configuration() -> None:
    assert known(BASELINE_VLLM).told() == ""
    assert resolved(BASELINE_VLLM).release.name == "26.08"


def test_a_driver_is_read_from_its_label_or_from_its_parts() -> None:
    parts = {
        f"nvidia.com/cuda.driver.{part}": number for part, number in (("major", "550"), ("minor", "54"), ("rev", "14"))
    }
    found = known(BASELINE_VLLM, node("580.95.05"), {"nvidia.com/gpu.product": PRODUCT, **parts}).found

    assert [driver.version for driver in found] == ["550.54.14", "580.95.05"]


@pytest.mark.parametrize("labels", [{}, {"nvidia.com/cuda.driver-version.full": "none"}])
def test_a_node_that_tells_no_driver_is_not_counted(labels: dict[str, str]) -> None:
    assert known(BASELINE_VLLM, {"nvidia.com/gpu.product": PRODUCT, **labels}).found == ()


def test_nodes_that_the_pods_may_not_run_on_are_not_counted() -> None:
    spec = {**DRAFT_TARGET, "pod": {"nodeSelector": {"pool": "a"}}}
    nodes = (node("535.1", pool="b"), node("535.2", RTX, pool="a"), node("580.3", pool="a"))

    assert [driver.version for driver in known(spec, *nodes).found] == ["580.3"]


def test_nodes_tell_more_than_the_configuration() -> None:
    configuration = configured(gpuDriver="535.183.06")

    assert known(BASELINE_VLLM, node("580.95.05"), configuration=configuration).told() == (
        "driver 580.95.05 of the labels of 1 GPU node"
    )
    assert known(BASELINE_VLLM, configuration=configuration).told() == (
        "driver 535.183.06 of the operator's configuration (gpuDriver)"
    )


@pytest.mark.parametrize(
    ("driver", "release"), [("580.95.05", "26.08"), ("535.183.06", "26.07"), ("525.147.05", "25.07")]
)
def test_the_default_is_the_newest_release_that_the_declared_driver_runs(driver: str, release: str) -> None:
    assert resolved(BASELINE_VLLM, configuration=configured(gpuDriver=driver)).release.name == release


def test_the_default_is_one_that_all_drivers_run_or_else_one_that_some_do() -> None:
    assert resolved(BASELINE_VLLM, node("580.1"), node("535.183.06")).release.name == "26.07"
    assert resolved(BASELINE_VLLM, node("580.1"), node("450.1")).release.name == "26.08"


def test_the_reason_of_the_pin_names_the_driver_and_what_it_does_not_run() -> None:
    (pin,) = resolved(BASELINE_VLLM, configuration=configured(gpuDriver="535.183.06")).pins

    assert "run by driver 535.183.06 of the operator's configuration (gpuDriver)" in pin.reason
    assert "passed over: 26.08 (needs driver 580)" in pin.reason


def test_a_named_release_is_refused_where_no_driver_runs_it() -> None:
    assert refused(node("535.183.06", RTX), node("550.1", RTX), **on_vllm("25.10")) == (
        f"release 25.10 does not run on the GPU nodes: driver 550.1 is too old: {RTX}, not a data-centre GPU, needs "
        "580 or newer (source: NVIDIA's CUDA Compatibility; Triton's release notes 25.08 to 25.10; NVIDIA's CUDA "
        "13.0.2 image). The driver is that of the labels of 2 GPU nodes. Install a newer one; no release that it "
        "runs serves the method; or, if you know that this driver runs the image, say so in runtime.minimumDriver"
    )


def test_a_refusal_names_the_releases_that_the_driver_runs() -> None:
    assert "name a release that it runs (25.01 to 25.07)" in refused(
        configuration=configured(gpuDriver="525.147.05"), **on_vllm("26.02")
    )


def test_a_named_release_that_some_driver_runs_is_taken() -> None:
    assert resolved(BASELINE_VLLM, node("580.1"), node("450.1"), **on_vllm("25.10")).release.name == "25.10"


def test_nothing_is_refused_where_pods_may_run_on_a_node_that_tells_no_driver() -> None:
    silent = {"nvidia.com/gpu.product": PRODUCT}

    assert resolved(BASELINE_VLLM, node("450.1"), silent, **on_vllm("25.10")).release.name == "25.10"
    assert resolved(BASELINE_VLLM, node("450.1"), silent).release.name == "26.08"


def test_without_a_release_that_a_driver_runs_the_newest_is_refused() -> None:
    assert "release 26.08 does not run" in refused(configuration=configured(gpuDriver="450.1"))


def test_the_operator_s_default_release_is_refused_where_no_driver_runs_it() -> None:
    configuration = configured(gpuDriver="450.1", defaultReleases={"VLLM": "25.10"})

    assert "release 25.10 does not run" in refused(configuration=configuration)


def test_a_release_that_was_pinned_is_kept_whatever_drivers_are_told() -> None:
    pins = resolved(BASELINE_VLLM).pins
    again = resolve(model(BASELINE_VLLM).spec, table=TABLE, configuration=configured(gpuDriver="450.1"), pins=pins)

    assert again.release.name == "26.08"


@pytest.mark.parametrize(
    ("configuration", "runtime", "source"),
    [
        ({"gpuDriver": "450.1"}, {"minimumDriver": "450"}, "spec.runtime.minimumDriver"),
        ({"gpuDriver": "450.1", "minimumDriver": "450"}, {}, "minimumDriver of the operator's configuration"),
        ({"gpuDriver": "450.1", "minimumDriver": "999"}, {"minimumDriver": "450"}, "spec.runtime.minimumDriver"),
    ],
)
def test_a_declared_minimum_stands_in_place_of_what_is_known_of_a_release(
    configuration: dict[str, Any], runtime: dict[str, str], source: str
) -> None:
    floor = resolved(
        BASELINE_VLLM, configuration=configured(**configuration), **on_vllm("25.10", **runtime)
    ).driver_floor

    assert (floor.minimum, floor.data_center, floor.source) == ("450", (), source)


def test_a_declared_minimum_may_be_above_what_a_release_needs() -> None:
    assert "needs 590 or newer" in refused(
        configuration=configured(gpuDriver="580.1"), **on_vllm("25.10", minimumDriver="590")
    )


def test_a_release_is_chosen_again_when_the_declared_minimum_changes() -> None:
    first = resolved(BASELINE_VLLM, configuration=configured(gpuDriver="535.183.06"))
    again = resolve(
        model(BASELINE_VLLM, **on_vllm(minimumDriver="535")).spec,
        table=TABLE,
        configuration=configured(gpuDriver="535.183.06"),
        pins=first.pins,
    )

    assert (first.release.name, again.release.name) == ("26.07", "26.08")

"""Which drivers run an image."""

from __future__ import annotations

import pytest

from specdec_operator.pod.driver import ANY_DRIVER, DriverFloor, driver_trouble, is_data_center, needed

FLOOR = DriverFloor(minimum="580", data_center=("535.86", "550", "590"), source="a page")
H100, RTX = "NVIDIA-H100-80GB-HBM3", "NVIDIA-GeForce-RTX-4090"


@pytest.mark.parametrize("driver", ["580", "580.0", "580.65.06", "595.45.04", "1000.1"])
@pytest.mark.parametrize("product", [H100, RTX, ""])
def test_the_minimum_and_what_is_newer_run_it_on_any_gpu(driver: str, product: str) -> None:
    assert driver_trouble(FLOOR, driver=driver, product=product) == ""


@pytest.mark.parametrize("driver", ["535.86", "535.86.10", "535.274.02", "550.54.14"])
def test_a_listed_branch_runs_it_on_a_data_centre_gpu(driver: str) -> None:
    assert driver_trouble(FLOOR, driver=driver, product=H100) == ""
    assert "not a data-centre GPU, needs 580 or newer (source: a page)" in driver_trouble(
        FLOOR, driver=driver, product=RTX
    )


@pytest.mark.parametrize("driver", ["535.54.03", "534.99", "536.0", "549.99", "551.1", "470.256.02", "579.999"])
def test_a_branch_that_is_not_listed_does_not_run_it(driver: str) -> None:
    assert f"driver {driver} is too old: {H100}, a data-centre GPU" in driver_trouble(
        FLOOR, driver=driver, product=H100
    )


def test_branches_that_are_no_older_than_the_minimum_are_not_told() -> None:
    assert needed(FLOOR, data_center=True) == "580 or newer, or 535.86 or newer of R535, 550 or newer of R550"


@pytest.mark.parametrize("driver", ["", "[N/A]", "unknown"])
def test_a_driver_that_is_not_known_is_not_refused(driver: str) -> None:
    assert driver_trouble(FLOOR, driver=driver, product=H100) == ""


def test_an_image_of_which_nothing_is_known_runs_on_any_driver() -> None:
    assert driver_trouble(ANY_DRIVER, driver="390.1", product=RTX) == ""


@pytest.mark.parametrize(
    "name", ["Tesla T4", "NVIDIA L40S", "NVIDIA RTX PRO 6000 Blackwell Server Edition", "NVIDIA X1"]
)
def test_a_server_s_gpu_and_one_that_is_not_known_count_as_data_centre_gpus(name: str) -> None:
    assert is_data_center(name)
    assert is_data_center(name.replace(" ", "-"))

"""The drivers that a declared fleet may have, against what NVIDIA's documents say of each image.

`specdec validate` is asked, with a configuration that declares the driver (`gpuDriver`).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest

from specdec_operator.cli.main import main
from tests.upstream.contracts import contract
from tests.upstream.rendering import EXAMPLES, releases

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ANY_GPU, DATA_CENTER = contract("drivers/any_gpu.yaml"), contract("drivers/data_center.yaml")
(GPUS,) = contract("drivers/gpus.yaml").of("25.10")
H100, RTX = "NVIDIA-H100-80GB-HBM3", "NVIDIA-GeForce-RTX-4090"
BACKENDS: Final = {"trtllm": "TensorRTEngine", "vllm": "VLLM"}
IMAGES: Final = ANY_GPU.releases()
"""As in `25.10 vllm`."""


def _numbers(driver: str) -> list[int]:
    return [int(part) for part in driver.split(".")]


def _below(driver: str) -> str:
    """The newest driver that is older."""
    branch, *rest = _numbers(driver)
    return f"{branch}.{rest[0] - 1}.99" if rest and rest[0] else f"{branch - 1}.999"


def _drivers() -> Iterator[str]:
    """Every driver at which an answer changes, and those of which NVIDIA's documents speak."""
    for image in IMAGES:
        (declared,) = ANY_GPU.of(image)
        yield from (declared["minimum"], _below(declared["minimum"]), declared["made_with"])
        for row in DATA_CENTER.of(image):
            yield from (driver for oldest in row["branches"] for driver in (oldest, _below(oldest)))
            yield from row["refused"]


DRIVERS: Final[list[str]] = sorted(set(_drivers()), key=_numbers)


def _runs(image: str, driver: str, *, data_center: bool) -> bool:
    (declared,) = ANY_GPU.of(image)
    if _numbers(driver) >= _numbers(declared["minimum"]):
        return True
    branches = [_numbers(oldest) for row in DATA_CENTER.of(image) for oldest in row["branches"]]
    return data_center and any(oldest[0] == _numbers(driver)[0] and _numbers(driver) >= oldest for oldest in branches)


def _refused(
    folder: Path, driver: str, asked: dict[str, tuple[str, str]], capsys: pytest.CaptureFixture[str]
) -> set[str]:
    """Names of the models that a fleet with this driver is refused.

    Args:
        asked: Image and GPU product per name.
    """
    configuration, models = folder / "configuration.yaml", folder / "models.yaml"
    configuration.write_text(json.dumps({"gpuDriver": driver}))
    models.write_text("\n---\n".join(json.dumps(_model(name, *wanted)) for name, wanted in asked.items()))
    main(["validate", str(models), "--configuration", str(configuration)])
    said = capsys.readouterr().out.splitlines()
    return {
        name for name in asked if any(f":{name}: " in line and f"driver {driver} is too old" in line for line in said)
    }


def _model(name: str, image: str, product: str) -> dict[str, Any]:
    release, kind = image.split()
    return {
        "apiVersion": "specdec.dev/v1alpha1",
        "kind": "SpeculativeModel",
        "metadata": {"name": name},
        "spec": {
            "runtime": {"backend": BACKENDS[kind], "release": release},
            "target": {"source": {"persistentVolumeClaim": {"claimName": "models"}}},
            "speculation": {"method": "None"},
            "placement": {"gpu": {"product": product}},
            "storage": {"claimName": "models"},
        },
    }


def test_every_release_of_the_operator_has_its_drivers_in_a_contract() -> None:
    assert {image.split()[0] for image in IMAGES} == set(releases())
    assert DATA_CENTER.releases() == IMAGES


@pytest.mark.parametrize("image", IMAGES)
def test_the_driver_that_an_image_s_cuda_was_made_with_runs_it(image: str) -> None:
    (declared,) = ANY_GPU.of(image)

    assert _runs(image, declared["made_with"], data_center=False)


@pytest.mark.parametrize("image", IMAGES)
def test_no_driver_is_declared_to_run_an_image_and_not_to(image: str) -> None:
    refused = [driver for row in DATA_CENTER.of(image) for driver in row["refused"]]

    assert not [driver for driver in refused if _runs(image, driver, data_center=True)]


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_release_is_refused_to_the_drivers_that_do_not_run_it_alone(
    driver: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = {
        f"{image.replace('.', '-').replace(' ', '-')}-{kind}": (image, product)
        for image in IMAGES
        for kind, product in (("data-center", H100), ("other", RTX))
    }
    wanted = {name for name, (image, product) in asked.items() if not _runs(image, driver, data_center=product == H100)}

    assert _refused(tmp_path, driver, asked, capsys) == wanted


@pytest.mark.parametrize("driver", ["580.65.06", "580.159.04"])
def test_every_example_is_served_on_the_long_term_branch(
    driver: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configuration = tmp_path / "configuration.yaml"
    configuration.write_text(json.dumps({"gpuDriver": driver, "gpuProduct": H100, "storage": {"claimName": "models"}}))

    assert main(["validate", *map(str, EXAMPLES.glob("*.yaml")), "--configuration", str(configuration)]) == 0
    assert capsys.readouterr().out.count(": valid") >= 19


def test_older_branches_are_for_data_centre_gpus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    products = {f"gpu-{index}": product for index, product in enumerate([*GPUS["data_center"], *GPUS["others"]])}
    asked = {name: ("25.10 vllm", product) for name, product in products.items()}

    refused = _refused(tmp_path, "535.183.06", asked, capsys)

    assert {products[name] for name in refused} == set(GPUS["others"])

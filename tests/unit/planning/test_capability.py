from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from specdec_operator.api.v1alpha1.speculation import METHODS
from specdec_operator.api.yaml_text import read_yaml
from specdec_operator.planning import capability
from specdec_operator.planning.drivers import known_drivers
from specdec_operator.planning.refusal import Refusal
from specdec_operator.runtimes.table import load_table
from tests.unit.specs import BASELINE, CONFIGURATION, model

NEWER: dict[str, Any] = {
    "name": "27.01",
    "image": "registry.example.com/triton:1",
    "tensorrtLLM": "1.3.0",
    "LLMAPI": {"methods": ["Eagle3", "None"]},
    "VLLM": {"image": "registry.example.com/vllm:1", "version": "0.33.0", "methods": ["Eagle", "None"]},
    "source": "a test",
}
TABLE = load_table()
WITH_NEWER = load_table([NEWER])
VECTORS: dict[str, list[dict[str, str]]] = read_yaml(
    (Path(__file__).parents[2] / "vectors" / "capability.yaml").read_text(encoding="utf-8")
)
BACKENDS = ("LLMAPI", "TensorRTEngine", "VLLM")
UNKNOWN = known_drivers(model(BASELINE).spec, "VLLM", product=None, configuration=CONFIGURATION)


def found(method: Any, backend: Any, release: str, *, stock_image: bool = True) -> list[Refusal]:
    table = WITH_NEWER if release == "27.01" else TABLE
    row = table.find(release)
    assert row is not None
    return capability.refusals(method, backend, row, table=table, stock_image=stock_image)


@pytest.mark.parametrize(("method", "backend", "message"), [tuple(row.values()) for row in VECTORS["never"]])
def test_a_method_that_no_release_serves_on_a_backend_is_refused_with_what_to_use(
    method: Any, backend: Any, message: str
) -> None:
    assert capability.method_refusals(method, backend, table=TABLE) == [
        Refusal(reason="MethodNotOnBackend", path="spec.speculation.method", message=message)
    ]


@pytest.mark.parametrize(
    ("method", "backend", "release", "reason", "message"), [tuple(row.values()) for row in VECTORS["lacking"]]
)
def test_what_a_release_lacks_is_refused_with_why_and_what_to_use(
    method: str, backend: str, release: str, reason: str, message: str
) -> None:
    assert found(method, backend, release) == [Refusal(reason=reason, path="spec.runtime.release", message=message)]


def test_a_mended_image_passes_a_defect_of_the_stock_image() -> None:
    assert found("Eagle3", "LLMAPI", "26.07", stock_image=False) == []


@pytest.mark.parametrize("release", TABLE.releases, ids=lambda release: release.name)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_served_or_refused_with_what_to_use(method: Any, backend: Any, release: Any) -> None:
    refused = capability.refusals(method, backend, release, table=TABLE, stock_image=False)

    assert method in release.methods(backend) or ": " in refused[0].message
    assert all("use " in refusal.message for refusal in refused)


def test_the_newest_release_is_chosen_with_what_is_known_of_it() -> None:
    table = type(TABLE)(tuple(release for release in TABLE.releases if release.name <= "26.02"), TABLE.words)
    release = table.default("VLLM", "Eagle")
    assert release is not None

    assert capability.choice("Eagle", "VLLM", release, table=table, drivers=UNKNOWN) == (
        "the newest release that serves Eagle on VLLM without a known blocking defect (vLLM 0.15.1); known of it: "
        "vllm-48894"
    )


def test_a_choice_says_why_newer_releases_were_passed_over() -> None:
    release = WITH_NEWER.default("TensorRTEngine", "None")
    assert release is not None

    assert capability.choice("None", "TensorRTEngine", release, table=WITH_NEWER, drivers=UNKNOWN).endswith(
        "passed over: 26.08 (no image), 27.01 (no TensorRTEngine)"
    )

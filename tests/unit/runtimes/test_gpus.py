from __future__ import annotations

import pytest

from specdec_operator.runtimes.gpus import capability, compute_capability


@pytest.mark.parametrize(
    ("product", "expected"),
    [
        ("NVIDIA-H100-80GB-HBM3", (9, 0)),
        ("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", (8, 0)),
        ("NVIDIA-A10G-SHARED", (8, 6)),
        ("NVIDIA-L40S", (8, 9)),
        ("Tesla-T4", (7, 5)),
        ("NVIDIA-GeForce-RTX-4090", (8, 9)),
        ("NVIDIA-B200", (10, 0)),
    ],
)
def test_a_known_product_has_its_capability(product: str, expected: tuple[int, int]) -> None:
    assert compute_capability(product) == expected


@pytest.mark.parametrize("product", ["", "NVIDIA-X1000", "NVIDIA-A100X"])
def test_an_unknown_product_is_not_judged(product: str) -> None:
    assert compute_capability(product) is None


def test_capabilities_compare_by_number() -> None:
    assert capability("10.0") > capability("8.9")

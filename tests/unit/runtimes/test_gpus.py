from __future__ import annotations

import pytest

from specdec_operator.runtimes.gpus import capability, compute_capability, memory_of

MEBIBYTE = 1024**2


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


@pytest.mark.parametrize(
    ("product", "mebibytes"),
    [
        ("NVIDIA-H100-80GB-HBM3", 81559),
        ("NVIDIA-H100-NVL", 95830),
        ("NVIDIA-A100-SXM4-40GB", 40960),
        ("NVIDIA-A100-80GB-PCIe", 81920),
        ("NVIDIA-A10", 23028),
        ("NVIDIA-A10-SHARED", 23028),
        ("NVIDIA-L40S", 46068),
        ("NVIDIA-L4", 23034),
        ("Tesla-T4", 15360),
        ("Tesla-V100-SXM2-32GB", 32768),
        ("Quadro-RTX-8000", 49152),
        ("NVIDIA-GeForce-RTX-3090-Ti", 24564),
        ("NVIDIA-GeForce-RTX-4090", 24564),
        ("NVIDIA-RTX-6000-Ada-Generation", 49140),
        ("NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", 97887),
        ("NVIDIA-GH200-480GB", 97871),
        ("NVIDIA-B200", 183359),
        ("NVIDIA-Z900-48GB", 48 * 1024),
    ],
)
def test_a_product_s_memory_is_known_by_its_label(product: str, mebibytes: int) -> None:
    assert memory_of(product) == mebibytes * MEBIBYTE


@pytest.mark.parametrize(
    ("product", "resource", "gigabytes"),
    [
        ("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "nvidia.com/gpu", 5),
        ("NVIDIA-A100-SXM4-80GB", "nvidia.com/mig-3g.40gb", 40),
        ("NVIDIA-H100-80GB-HBM3", "nvidia.com/mig-1g.10gb.me", 10),
    ],
)
def test_a_mig_device_has_a_little_less_than_its_profile_says(product: str, resource: str, gigabytes: int) -> None:
    assert memory_of(product, resource=resource) == gigabytes * 970 * MEBIBYTE


@pytest.mark.parametrize("product", ["", "A-GPU", "NVIDIA-A100", "NVIDIA-A1000", "NVIDIA-L400"])
def test_an_unknown_product_s_memory_is_not_guessed(product: str) -> None:
    assert memory_of(product) is None

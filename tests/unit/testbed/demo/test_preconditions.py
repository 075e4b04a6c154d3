from __future__ import annotations

from typing import Any

from testbed.demo.preconditions import gpu_problems, load_commands, nodes_without_images, storage_problems
from testbed.session import PRODUCT

NodeStatus = dict[str, Any]


def node(*, product: str = PRODUCT, gpus: str = "8", images: tuple[str, ...] = ()) -> dict[str, Any]:
    status: NodeStatus = {"allocatable": {"nvidia.com/gpu": gpus}, "images": [{"names": [name]} for name in images]}
    return {"metadata": {"name": "worker", "labels": {"nvidia.com/gpu.product": product}}, "status": status}


def test_a_node_with_gpus_of_the_product_is_enough() -> None:
    assert not list(gpu_problems([node(gpus="0"), node()]))


def test_gpus_of_another_product_are_told_with_the_commands_that_declare_them() -> None:
    (problem,) = gpu_problems([node(product="NVIDIA-L4")])
    assert f"kubectl label node worker nvidia.com/gpu.product={PRODUCT}" in problem
    assert "kubectl patch node worker --subresource=status" in problem


def test_a_cluster_without_a_default_storage_class_is_told_so() -> None:
    (problem,) = storage_problems([{"metadata": {"name": "slow"}}])
    assert "kubectl annotate storageclass" in problem


def test_a_default_storage_class_is_enough() -> None:
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"}
    assert not list(storage_problems([{"metadata": {"name": "standard", "annotations": annotations}}]))


def test_only_gpu_nodes_need_the_images() -> None:
    needed = ("simulator:1", "operator:1")
    assert nodes_without_images([node(gpus="0"), node(images=needed)], needed) == []
    assert nodes_without_images([node(images=("simulator:1",))], needed) == ["worker"]


def test_the_commands_that_load_the_images_name_the_operators() -> None:
    assert "docker build --tag registry/operator:2 ." in load_commands("registry/operator:2")

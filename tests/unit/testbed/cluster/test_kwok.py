from __future__ import annotations

import pytest
import yaml

from testbed.cluster import kwok
from testbed.cluster.kwok import KwokNodes, is_ready, node_object


def test_nodes_are_numbered_from_zero() -> None:
    assert KwokNodes(prefix="a", count=3).names() == ("a-0", "a-1", "a-2")


def test_a_node_declares_its_gpus_and_product() -> None:
    node = node_object("a-0", KwokNodes(gpus=4, product="NVIDIA-L40S"))
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "4"
    assert node["metadata"]["labels"]["nvidia.com/gpu.product"] == "NVIDIA-L40S"


@pytest.mark.parametrize(
    ("status", "taints", "expected"), [("True", None, True), ("False", None, False), ("True", [{"key": "k"}], False)]
)
def test_a_node_is_ready_when_it_says_so_and_bears_no_taint(
    *, status: str, taints: list[dict[str, str]] | None, expected: bool
) -> None:
    node = {"spec": {"taints": taints}, "status": {"conditions": [{"type": "Ready", "status": status}]}}
    assert is_ready(node) is expected


@pytest.mark.parametrize(
    "annotation", [kwok.TERMINATION_MESSAGE_ANNOTATION, kwok.EXIT_CODE_ANNOTATION, kwok.NEVER_READY_ANNOTATION]
)
def test_the_stages_know_each_annotation(annotation: str) -> None:
    expressions = [
        expression["key"]
        for stage in yaml.safe_load_all(kwok.STAGES.read_text())
        for expression in stage["spec"]["selector"]["matchExpressions"]
    ]
    assert any(annotation in expression for expression in expressions)

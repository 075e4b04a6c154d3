from __future__ import annotations

import pytest

from specdec_operator.cluster.resources import DEPLOYMENTS, PODS, ResourceType, resource_of

NODES = ResourceType("", "v1", "nodes", "Node", namespaced=False)


def test_a_core_object_has_its_path_under_api() -> None:
    assert PODS.path(namespace="a", name="b") == "/api/v1/namespaces/a/pods/b"


def test_a_grouped_object_has_its_path_under_apis() -> None:
    assert DEPLOYMENTS.path(namespace="a", name="b") == "/apis/apps/v1/namespaces/a/deployments/b"


def test_a_subresource_stands_after_the_name() -> None:
    assert DEPLOYMENTS.path(namespace="a", name="b", subresource="status").endswith("/deployments/b/status")


def test_a_collection_over_all_namespaces_names_none() -> None:
    assert PODS.path() == "/api/v1/pods"


def test_a_cluster_wide_object_needs_no_namespace() -> None:
    assert NODES.path(name="n") == "/api/v1/nodes/n"


def test_a_namespaced_object_without_namespace_is_refused() -> None:
    with pytest.raises(ValueError, match="Pod 'b' needs a namespace"):
        PODS.path(name="b")


def test_a_namespace_for_a_cluster_wide_type_is_refused() -> None:
    with pytest.raises(ValueError, match="Node is not namespaced"):
        NODES.path(namespace="a")


def test_a_subresource_without_a_name_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a name"):
        PODS.path(namespace="a", subresource="status")


def test_a_type_is_found_by_what_its_objects_carry() -> None:
    assert resource_of(api_version="apps/v1", kind="Deployment") is DEPLOYMENTS


def test_a_type_that_the_operator_does_not_touch_is_refused() -> None:
    with pytest.raises(ValueError, match="v1 Secret is none of the types"):
        resource_of(api_version="v1", kind="Secret")

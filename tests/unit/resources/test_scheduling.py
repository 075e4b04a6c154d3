from __future__ import annotations

import copy
from typing import Any

import pytest

from specdec_operator.api.v1alpha1.pod import Pod
from specdec_operator.resources.scheduling import (
    container_security,
    gpu_claims,
    on_node,
    pod_security,
    scheduling,
    together,
)

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

HERE = {"key": "metadata.name", "operator": "In", "values": ["node-1"]}


def terms(parts: dict[str, object]) -> object:
    affinity = on_node(parts, "node-1")["affinity"]["nodeAffinity"]
    return affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]


def test_only_what_is_set_is_written() -> None:
    assert scheduling(Pod()) == {}


def test_everything_that_is_set_is_written() -> None:
    pod = Pod.model_validate(
        {
            "nodeSelector": {"a": "b"},
            "tolerations": [{"key": "c", "operator": "Exists", "effect": "NoSchedule"}],
            "affinity": {"podAffinity": {}},
            "imagePullSecrets": ["d"],
            "priorityClassName": "e",
            "schedulerName": "f",
            "runtimeClassName": "g",
            "serviceAccountName": "h",
        }
    )

    assert scheduling(pod) == {
        "nodeSelector": {"a": "b"},
        "tolerations": [{"key": "c", "operator": "Exists", "effect": "NoSchedule"}],
        "affinity": {"podAffinity": {}},
        "imagePullSecrets": [{"name": "d"}],
        "priorityClassName": "e",
        "schedulerName": "f",
        "runtimeClassName": "g",
        "serviceAccountName": "h",
    }


def test_a_pod_is_held_to_the_node_of_its_volume() -> None:
    assert terms({}) == [{"matchFields": [HERE]}]


def test_every_alternative_is_held_to_the_node() -> None:
    zones = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]} for zone in "ab"]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": zones}}

    assert terms({"affinity": {"nodeAffinity": required}}) == [{**zone, "matchFields": [HERE]} for zone in zones]


def test_other_affinities_are_kept() -> None:
    parts = on_node({"affinity": {"podAffinity": {"a": 1}}, "nodeSelector": {"b": "c"}}, "node-1")

    assert (parts["affinity"]["podAffinity"], parts["nodeSelector"]) == ({"a": 1}, {"b": "c"})


@pytest.mark.parametrize(
    "node_affinity",
    [
        "a",
        {"requiredDuringSchedulingIgnoredDuringExecution": "a"},
        {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": "a"}},
        {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": ["a"]}},
        {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": "a"}]}},
    ],
)
def test_an_affinity_of_another_shape_is_left_to_the_api_server(node_affinity: object) -> None:
    parts = {"affinity": {"nodeAffinity": node_affinity}}

    assert on_node(parts, "node-1") == parts


def test_the_declared_affinity_is_not_changed() -> None:
    required: dict[str, Any] = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{}]}}
    declared = {"affinity": {"nodeAffinity": required}}
    before = copy.deepcopy(declared)
    on_node(declared, "node-1")

    assert declared == before


def test_nothing_runs_as_root_or_gains_a_capability() -> None:
    assert pod_security(Pod())["runAsNonRoot"]
    assert container_security() == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def test_user_and_groups_are_the_declared_ones() -> None:
    security = pod_security(Pod(run_as_user=1, run_as_group=2, fs_group=3))

    assert (security["runAsUser"], security["runAsGroup"], security["fsGroup"]) == (1, 2, 3)


def beside(parts: dict[str, object]) -> object:
    return together(parts, ["claim.specdec.dev/a"])["affinity"]["podAffinity"][REQUIRED]


def test_pods_of_one_volume_are_kept_on_one_node() -> None:
    selector = {"matchExpressions": [{"key": "claim.specdec.dev/a", "operator": "Exists"}]}

    assert beside({}) == [{"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}]


def test_an_affinity_of_the_user_s_is_kept() -> None:
    own = {"labelSelector": {}, "topologyKey": "zone"}

    found = beside({"affinity": {"podAffinity": {REQUIRED: [own]}}})
    assert isinstance(found, list)
    assert (found[0], len(found)) == (own, 2)


def test_without_such_a_volume_nothing_is_added() -> None:
    assert together({"nodeSelector": {"a": "b"}}, []) == {"nodeSelector": {"a": "b"}}


@pytest.mark.parametrize("affinity", [{"podAffinity": 3}, {"podAffinity": {REQUIRED: "x"}}])
def test_an_affinity_that_is_no_affinity_is_left_to_the_api_server(affinity: dict[str, object]) -> None:
    assert together({"affinity": affinity}, ["a"]) == {"affinity": affinity}


def test_a_claim_template_becomes_the_pod_s_claim() -> None:
    assert gpu_claims("two") == {"resourceClaims": [{"name": "gpus", "resourceClaimTemplateName": "two"}]}

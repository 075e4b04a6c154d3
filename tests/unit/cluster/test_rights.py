from __future__ import annotations

from specdec_operator.cluster.resources import ALL_RESOURCES, LEASES, NODES, PODS, SPECULATIVE_MODELS
from specdec_operator.cluster.rights import NODE_LABELS, WATCHED, Right, own, rules


def test_a_right_becomes_a_rule_of_its_group() -> None:
    right = Right(resource=PODS, verbs=("list", "watch"))
    assert right.rule() == {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]}


def test_a_right_on_a_subresource_is_none_on_the_object() -> None:
    right = Right(resource=SPECULATIVE_MODELS, subresource="status", verbs=("patch",))
    assert right.rule()["resources"] == ["speculativemodels/status"]


def test_the_own_lease_is_the_only_one_that_may_be_changed() -> None:
    changing = [rule for rule in rules([*WATCHED, *own("here")]) if {"update", "patch"} & set(rule["verbs"])]
    leases = [rule for rule in changing if rule["resources"] == [LEASES.plural]]
    assert [rule["resourceNames"] for rule in leases] == [["here"]]


def test_no_right_reaches_beyond_a_namespace() -> None:
    assert all(right.resource.namespaced for right in [*WATCHED, *own("here")])


def test_the_labels_of_nodes_are_read_and_nothing_holds_without_them() -> None:
    (right,) = NODE_LABELS
    assert (right.resource, right.verbs, right.optional) == (NODES, ("list",), ("list",))


def test_each_right_is_on_a_type_that_the_operator_touches() -> None:
    assert {right.resource for right in [*WATCHED, *NODE_LABELS, *own("here")]} <= set(ALL_RESOURCES)


def test_no_right_is_declared_twice() -> None:
    declared = [(right.resource, right.subresource, verb) for right in WATCHED for verb in right.verbs]
    assert len(declared) == len(set(declared))

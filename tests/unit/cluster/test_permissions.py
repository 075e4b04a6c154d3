from __future__ import annotations

from typing import Any

import pytest

from specdec_operator.cluster.permissions import Permission, lacking, missing_in_words, permissions
from specdec_operator.cluster.resources import EVENTS, LEASES, SPECULATIVE_MODELS
from specdec_operator.cluster.rights import WATCHED, Right, own, rules

CREATE_JOBS = Permission(verb="create", group="batch", resource="jobs", namespace="team")
PATCH_STATUS = Permission(verb="patch", group="specdec.dev", resource="speculativemodels", subresource="status")
OWN_LEASE = Permission(verb="update", group="coordination.k8s.io", resource="leases", name="mine")
ACCOUNT = "system:serviceaccount:specdec-system:specdec-operator"
EVERYWHERE = f"--all-namespaces --as={ACCOUNT}"


def rule(**parts: Any) -> dict[str, Any]:
    return {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["create"], **parts}


def test_the_shipped_rules_leave_nothing_out() -> None:
    rights = (*WATCHED, *own("mine"))
    assert lacking(permissions(rights), rules(rights)) == ()


@pytest.mark.parametrize("dropped", range(len(WATCHED)))
def test_a_shipped_rule_that_is_taken_is_missed_by_each_of_its_verbs(dropped: int) -> None:
    kept = [right for number, right in enumerate(WATCHED) if number != dropped]
    missing = lacking(permissions(WATCHED), rules(kept))
    assert [permission.verb for permission in missing] == list(WATCHED[dropped].verbs)


@pytest.mark.parametrize(
    "given", [rule(), rule(verbs=["*"]), rule(apiGroups=["*"]), rule(resources=["*"]), rule(resources=["pods", "jobs"])]
)
def test_a_rule_gives_what_it_names_or_all(given: dict[str, Any]) -> None:
    assert lacking([CREATE_JOBS], [given]) == ()


@pytest.mark.parametrize(
    "given",
    [rule(verbs=["get"]), rule(apiGroups=[""]), rule(resources=["jobs/status"]), rule(resourceNames=["one"]), {}],
)
def test_a_rule_gives_nothing_else(given: dict[str, Any]) -> None:
    assert lacking([CREATE_JOBS], [given]) == (CREATE_JOBS,)


@pytest.mark.parametrize("resources", [["speculativemodels/status"], ["*/status"], ["*"]])
def test_a_subresource_is_given_by_its_own_name(resources: list[str]) -> None:
    given = {"apiGroups": ["specdec.dev"], "resources": resources, "verbs": ["patch"]}
    assert lacking([PATCH_STATUS], [given]) == ()


def test_a_subresource_is_not_given_with_its_object() -> None:
    given = {"apiGroups": ["specdec.dev"], "resources": ["speculativemodels"], "verbs": ["patch"]}
    assert lacking([PATCH_STATUS], [given]) == (PATCH_STATUS,)


@pytest.mark.parametrize(("names", "given"), [(["mine"], True), (["another"], False), ([], True)])
def test_a_rule_for_names_gives_those_names(names: list[str], given: bool) -> None:  # noqa: FBT001 - a case
    told = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["update"], "resourceNames": names}
    assert lacking([OWN_LEASE], [told]) == (() if given else (OWN_LEASE,))


def test_permissions_are_each_verb_of_each_right() -> None:
    rights = [Right(resource=LEASES, verbs=("get", "update"), names=("mine",))]
    assert [(p.verb, p.name, p.namespace) for p in permissions(rights, namespace="a")] == [
        ("get", "mine", "a"),
        ("update", "mine", "a"),
    ]


def test_verbs_that_the_operator_works_without_are_told_apart() -> None:
    found = permissions([Right(resource=EVENTS, verbs=("list", "create"), optional=("create",))])
    assert [(p.verb, p.optional) for p in found] == [("list", False), ("create", True)]


def test_nothing_is_said_where_nothing_is_missing() -> None:
    assert missing_in_words([], account=ACCOUNT) == ""


def test_verbs_resources_and_namespaces_are_named() -> None:
    watch = Permission(verb="watch", group="batch", resource="jobs", namespace="team")
    said = missing_in_words([CREATE_JOBS, watch, PATCH_STATUS], account=ACCOUNT)
    assert (
        "may not patch speculativemodels.specdec.dev/status in all namespaces; create/watch jobs.batch in namespace "
        "team." in said
    )


def test_namespaces_that_lack_the_same_are_named_together() -> None:
    missing = [Permission(verb="list", resource="pods", namespace=name) for name in ("a", "b", "c", "d", "e")]
    assert "may not list pods in namespace a, b, c and 2 more." in missing_in_words(missing, account="")


@pytest.mark.parametrize(
    ("permission", "command"),
    [
        (CREATE_JOBS, f"kubectl auth can-i create jobs.batch --namespace=team --as={ACCOUNT}"),
        (
            PATCH_STATUS,
            f"kubectl auth can-i patch speculativemodels.specdec.dev --subresource=status {EVERYWHERE}",
        ),
        (
            OWN_LEASE,
            f"kubectl auth can-i update leases.coordination.k8s.io/mine {EVERYWHERE}",
        ),
    ],
)
def test_the_command_that_looks_is_told(permission: Permission, command: str) -> None:
    assert missing_in_words([permission], account=ACCOUNT).endswith(f"Check: {command}")


def test_what_grants_it_is_told() -> None:
    said = missing_in_words([CREATE_JOBS], account=ACCOUNT)
    assert "helm upgrade with rbac.create=true and team among its namespaces" in said


def test_an_access_review_asks_for_all_that_is_known() -> None:
    assert PATCH_STATUS.attributes() == {
        "verb": "patch",
        "group": "specdec.dev",
        "resource": SPECULATIVE_MODELS.plural,
        "subresource": "status",
    }

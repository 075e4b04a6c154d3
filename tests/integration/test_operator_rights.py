"""The shipped rights, held against what the operators of this session asked for. Runs after all others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from specdec_operator.reconcile.informer import CHILDREN
from testbed.operator.install import rights

if TYPE_CHECKING:
    from tests.integration.conftest import Ledger

pytestmark = pytest.mark.controlplane

VERBS = {"apply": "patch", "apply_status": "patch", "replace": "update"}
"""The rights that the client's verbs need, where they are called otherwise."""
INFORMED = {("speculativemodels", ""), ("modelartifacts", ""), *((plural, "") for _group, _version, plural in CHILDREN)}
UNCOUNTED = {
    # The informer's own requests are not among the counted ones.
    *((verb, plural) for verb in ("list", "watch") for plural, _ in INFORMED),
    ("watch", "endpointslices"),
    # An Event that happens again is counted up after five minutes.
    ("patch", "events"),
    # The sixth revision of a model is removed.
    ("delete", "controllerrevisions"),
}
REFUSED = "tests.integration.test_operator_refused_writes"
"""The module whose quotas forbid what its operator has the right to."""
PROVOKED = {"tests.integration.test_operator_refused_writes"}
"""Modules in which admission refuses requests on purpose, which is answered by the same code."""
MODULES = 5
"""Fewer than so many other modules in a session say nothing about what is never used."""


def granted() -> set[tuple[str, str]]:
    """Return each verb and resource of the shipped roles."""
    return {
        (verb, resource)
        for document in rights()
        for rule in document.get("rules", [])
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def asked(ledger: Ledger) -> set[tuple[str, str]]:
    """Return each verb and resource that was asked for, as rights name them."""
    return {
        (VERBS.get(verb, verb), f"{plural}/status" if verb == "apply_status" else plural)
        for requests in ledger.requests.values()
        for verb, plural in requests.pairs()
    }


def test_nothing_was_forbidden(ledger: Ledger) -> None:
    if not ledger.requests:
        pytest.skip("no operator ran in this session")
    forbidden = {name: requests.with_code("403") for name, requests in ledger.requests.items() if name != REFUSED}
    assert not {name: found for name, found in forbidden.items() if found}


def test_no_right_is_granted_that_is_never_used(ledger: Ledger) -> None:
    if len(ledger.requests) < MODULES:
        pytest.skip("too few operators ran in this session to know what is never used")
    assert granted() - asked(ledger) - UNCOUNTED == set()


def test_no_secret_may_be_read() -> None:
    assert not {resource for _verb, resource in granted() if resource in ("secrets", "*")}


def test_no_verb_is_granted_by_a_wildcard() -> None:
    assert not {resource for verb, resource in granted() if verb == "*"}

"""Recorded refusals of an API server, as reasons."""

from __future__ import annotations

import pytest

from specdec_operator.cluster.errors import ApiError, BadRequest, Forbidden, Invalid
from specdec_operator.reconcile.halt import Halt
from specdec_operator.reconcile.refused_write import explain, refusals_halt

REQUEST = "create jobs.batch team/model-1"
QUOTA = 'jobs.batch "model-1" is forbidden: exceeded quota: q, requested: count/jobs.batch=1, used: 0, limited: 0'
NO_RIGHT = (
    'jobs.batch is forbidden: User "system:serviceaccount:specdec-system:specdec-operator" cannot create resource '
    '"jobs" in API group "batch" in the namespace "team"'
)
POLICY = "pods \"x\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no"
WEBHOOK = 'admission webhook "gate.example.com" denied the request: not here'
UNKNOWN_FIELD = 'Job in version "v1" cannot be handled as a Job: strict decoding error: unknown field "foo"'
OLD_CRD = (
    'ModelArtifact in version "v1alpha1" cannot be handled as a ModelArtifact: strict decoding error: unknown field '
    '"spec.fetch.content"'
)
OLD_VALUE = (
    'ModelArtifact.specdec.dev "model-1" is invalid: spec.fetch.content: Unsupported value: "DataSet": supported '
    'values: "Model"'
)
INVALID = 'Deployment.apps "m" is invalid: spec.template.spec.affinity: Required value'


@pytest.mark.parametrize(
    ("error", "reason", "terminal"),
    [
        (Forbidden(status=403, message=QUOTA, request=REQUEST), "QuotaExceeded", False),
        (Forbidden(status=403, message=NO_RIGHT, request=REQUEST), "OperatorForbidden", False),
        (Forbidden(status=403, message=WEBHOOK, request=REQUEST), "PodForbidden", False),
        (Invalid(status=422, message=POLICY, request=REQUEST), "PodForbidden", False),
        (Invalid(status=422, message=INVALID, request=REQUEST), "SpecRejected", True),
        (BadRequest(status=400, message=UNKNOWN_FIELD, request=REQUEST), "SpecRejected", True),
        (BadRequest(status=400, message=OLD_CRD, request=REQUEST), "CRDsOutdated", False),
        (Invalid(status=422, message=OLD_VALUE, request=REQUEST), "CRDsOutdated", False),
    ],
)
def test_a_refusal_has_a_reason(error: ApiError, reason: str, terminal: bool) -> None:  # noqa: FBT001 - a case
    found = explain(error)
    assert (found.reason, found.terminal) == (reason, terminal)


@pytest.mark.parametrize("message", [QUOTA, NO_RIGHT, WEBHOOK, INVALID])
def test_the_api_servers_words_are_kept(message: str) -> None:
    assert message in explain(Forbidden(status=403, message=message, request=REQUEST)).message


def test_a_missing_right_is_named_by_verb_and_resource() -> None:
    found = explain(Forbidden(status=403, message=NO_RIGHT, request=REQUEST))
    assert "the operator may not create jobs.batch in namespace team" in found.message


def test_a_missing_right_comes_with_the_command_that_looks() -> None:
    found = explain(Forbidden(status=403, message=NO_RIGHT, request=REQUEST))
    account = "system:serviceaccount:specdec-system:specdec-operator"
    assert f"kubectl auth can-i create jobs.batch --namespace=team --as={account}" in found.message


def test_what_is_forbidden_is_tried_again_after_a_minute() -> None:
    assert explain(Forbidden(status=403, message=QUOTA, request=REQUEST)).requeue_after == 60


def test_a_rejected_spec_says_where_to_look() -> None:
    assert "under spec.pod, spec.service" in explain(Invalid(status=422, message=INVALID, request=REQUEST)).message


def test_crds_older_than_the_operator_are_to_be_applied_again() -> None:
    assert (
        "kubectl apply --server-side -f crds/"
        in explain(BadRequest(status=400, message=OLD_CRD, request=REQUEST)).message
    )


def test_a_refusal_stops_the_way_at_its_stage() -> None:
    with pytest.raises(Halt) as halted, refusals_halt("EnginesReady"):
        raise Forbidden(status=403, message=QUOTA, request=REQUEST)
    assert (halted.value.condition, halted.value.reason) == ("EnginesReady", "QuotaExceeded")


def test_a_patch_that_lost_a_race_is_no_refusal() -> None:
    lost = Invalid(status=422, message="the server rejected our request due to an error in our request")
    with pytest.raises(Invalid), refusals_halt("Available"):
        raise lost

"""A request that the API server refuses, as a reason that status can hold: trying it again at once helps nobody."""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from specdec_operator.cluster.errors import BadRequest, Forbidden, Invalid
from specdec_operator.cluster.permissions import Permission, missing_in_words
from specdec_operator.reconcile.diagnosis import diagnose_text
from specdec_operator.reconcile.halt import Halt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from specdec_operator.api.v1alpha1.status import ConditionType
    from specdec_operator.cluster.errors import ApiError

REFUSALS = (Forbidden, Invalid, BadRequest)
"""Answers that the same request gets again, until somebody changes something."""

_FORBIDDEN_SECONDS = 60.0
_FAILED_TEST = "the server rejected our request due to an error in our request"
"""What a JSON patch gets whose tests don't hold: somebody else was faster, so that another try does help."""
OPERATORS_OWN = frozenset({"CRDsOutdated", "OperatorForbidden"})
"""Reasons that no user of a model can mend: whoever installs the operator must act."""
_OWN_KIND_OUTDATED = re.compile(
    r'^(?:ModelArtifact|SpeculativeModel) in version .*unknown field "'
    r"|^(?:ModelArtifact|SpeculativeModel)\.specdec\.dev .*: Unsupported value: "
)
"""The operator writes a field, or a value, of its own kinds that the installed definitions lack."""
_NO_RIGHT = re.compile(
    r'User "(?P<account>[^"]*)" cannot (?P<verb>\w+) resource "(?P<resource>[^"]+)"'
    r'(?: in API group "(?P<group>[^"]*)")?(?: in the namespace "(?P<namespace>[^"]*)")?'
)


@dataclass(frozen=True, kw_only=True)
class RefusedWrite:
    """Why the API server refused.

    Attributes:
        reason: A fixed CamelCase word.
        message: The API server's words, and what to do.
        requeue_after: Seconds after which to try again; None when only another spec can help.
    """

    reason: str
    message: str
    requeue_after: float | None

    @property
    def terminal(self) -> bool:
        """Whether only another spec can help."""
        return self.requeue_after is None


def explain(error: ApiError) -> RefusedWrite:
    """Who refused, and what to do: a right, a quota, an admission rule, old CRDs, or the schema of what was written."""
    said = f"the API server refuses to {error.request}: {error.message}"
    if right := _NO_RIGHT.search(error.message):
        lacks = missing_in_words([_permission(right)], account=right["account"])
        return RefusedWrite(reason="OperatorForbidden", message=f"{lacks}. {said}", requeue_after=_FORBIDDEN_SECONDS)
    if known := diagnose_text(error.message, about=f"the API server refuses to {error.request}"):
        return RefusedWrite(reason=known.reason, message=known.message, requeue_after=_FORBIDDEN_SECONDS)
    if isinstance(error, Forbidden):
        remedy = "Remedy: see the message: an admission rule of the cluster refuses the object"
        return RefusedWrite(reason="PodForbidden", message=f"{said}. {remedy}", requeue_after=_FORBIDDEN_SECONDS)
    if _OWN_KIND_OUTDATED.search(error.message):
        remedy = (
            "Remedy: the cluster's CRDs are older than the operator: kubectl apply --server-side -f crds/ of its "
            "release (Helm: helm upgrade with crds.install=true)"
        )
        return RefusedWrite(reason="CRDsOutdated", message=f"{said}. {remedy}", requeue_after=_FORBIDDEN_SECONDS)
    place = "Remedy: correct what the message names under spec.pod, spec.service or spec.storage"
    return RefusedWrite(reason="SpecRejected", message=f"{said}. {place}", requeue_after=None)


def _permission(right: re.Match[str]) -> Permission:
    resource, _, subresource = right["resource"].partition("/")
    return Permission(
        verb=right["verb"],
        group=right["group"] or "",
        resource=resource,
        subresource=subresource,
        namespace=right["namespace"] or "",
    )


@contextmanager
def refusals_halt(condition: ConditionType) -> Iterator[None]:
    """Turn a refused request into the end of the way.

    Raises:
        Halt: With the condition at whose stage the API server refused.
        Invalid: Somebody else changed the object meanwhile.
    """
    try:
        yield
    except REFUSALS as error:
        if _FAILED_TEST in error.message:
            raise
        why = explain(error)
        raise Halt(
            condition, why.reason, why.message, terminal=why.terminal, requeue_after=why.requeue_after
        ) from error

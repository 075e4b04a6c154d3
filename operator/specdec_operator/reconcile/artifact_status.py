"""What becomes of an artifact when its Job ends, vanishes or is asked for again. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ValidationError
from pydantic.alias_generators import to_camel

from specdec_operator.api.model import StatusModel
from specdec_operator.api.quantities import memory
from specdec_operator.api.v1alpha1.model_artifact import ModelArtifactStatus
from specdec_operator.api.v1alpha1.model_facts import DataSetFacts, ModelFacts
from specdec_operator.api.v1alpha1.scalars import Digest
from specdec_operator.reconcile.context import timestamp
from specdec_operator.resources import jobs
from specdec_operator.resources.labels import DOUBTED_AT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from specdec_operator.api.v1alpha1.model_artifact import ModelArtifact

VANISHED = "JobVanished"
DOUBTED = "ContentDoubted"
NOT_PUBLISHED = "EngineNotPublished"
_OF_TOKENS = frozenset({"GatedModel", "RepositoryNotFound", "Unauthorized"})
"""A hub says of a private repository that there is none to an account that may not read it."""
_FIRST_DELAY = timedelta(seconds=5)
_LONGEST_DELAY = timedelta(minutes=10)
MOST_INTERRUPTIONS = 12
"""Interruptions in a row after which somebody has to look: by then they have taken an hour and more."""
_AT_WORK = {
    "fetch": "Fetching",
    "inspect": "Inspecting",
    "build": "Building",
    "prebuilt": "Inspecting",
    "assemble": "Assembling",
}


@dataclass(frozen=True, kw_only=True)
class Failure:
    """How an attempt failed.

    Attributes:
        counts: Whether it is one of the allowed failures; a pod that was evicted is nobody's fault.
        mends_itself: Whether another attempt follows though only somebody outside the cluster's API can help.
    """

    reason: str
    message: str
    terminal: bool
    counts: bool = True
    mends_itself: bool = False


class _Result(StatusModel):
    """What a program that did its work tells."""

    facts: ModelFacts | None = None
    data_set: DataSetFacts | None = None
    digest: Digest = ""
    notes: tuple[str, ...] = ()


def _yields(artifact: ModelArtifact) -> Literal["facts", "data_set", "digest"]:
    """What the status of a finished artifact holds."""
    look = artifact.spec.fetch or artifact.spec.inspect
    if look is None:
        return "digest"
    return "facts" if look.content == "Model" else "data_set"


def started_over(artifact: ModelArtifact, *, claim_uid: str, retry: str) -> ModelArtifactStatus:
    """The status to go on from.

    A fresh one if the claim is another, or if a retry was asked for after a failure; back to looking if a serving pod
    did not find the content after it was last seen.
    """
    status = artifact.status
    if status.claim_uid and claim_uid and status.claim_uid != claim_uid:
        return ModelArtifactStatus(retry=retry, claim_uid=claim_uid, attempts=status.attempts)
    if status.state == "Ready" and artifact.metadata.annotations.get(DOUBTED_AT, "") > status.ready_at:
        return status.model_copy(
            update={
                "state": "Pending",
                "reason": DOUBTED,
                "message": "a serving pod did not find the content; looking, and making it again if it is gone",
                "verify_next": True,
                "job": "",
            }
        )
    if retry and retry != status.retry:
        if status.state == "Failed":
            return ModelArtifactStatus(retry=retry, claim_uid=claim_uid, attempts=status.attempts)
        return status.model_copy(update={"retry": retry})
    return status


def at_work(artifact: ModelArtifact, *, verify: bool) -> str:
    """The reason of a Job that runs."""
    if verify:
        return "Verifying"
    return next(reason for part, reason in _AT_WORK.items() if getattr(artifact.spec, part) is not None)


def work_message(artifact: ModelArtifact, job: str, *, verify: bool) -> str:
    """What a running Job is, and for a build what it takes: GPUs, and free space in the store."""
    build, gpu = artifact.spec.build, artifact.spec.gpu
    if build is None or verify:
        return f"Job {job}"
    room = memory(build.scratch_bytes or 3 * build.weight_bytes)
    gpus, claim = (gpu.count if gpu else 0), artifact.spec.claim_name
    return f"Job {job}: takes {gpus} GPU(s), and {room} of free space in claim {claim}"


def job_name(artifact: ModelArtifact, status: ModelArtifactStatus) -> str:
    """The name of the next attempt's Job: the same until the attempt is counted."""
    return jobs.job_name(artifact.metadata.name, attempt=status.attempts + 1, verify=verifies(artifact, status))


def verifies(artifact: ModelArtifact, status: ModelArtifactStatus) -> bool:
    """Whether the next attempt only looks: a build whose Job vanished may have published its engine."""
    return artifact.spec.build is not None and status.verify_next


def vanished(status: ModelArtifactStatus, *, now: datetime) -> ModelArtifactStatus:
    """The Job is gone before it was seen to end: the next comes at once, later ones after a while."""
    delay = _delay(status.failures) if status.failures else timedelta()
    return status.model_copy(
        update={
            "state": "Pending",
            "reason": VANISHED,
            "message": f"Job {status.job} is gone before it ended; looking at what it left",
            "attempts": status.attempts + 1,
            "failures": status.failures + 1,
            "not_before": timestamp(now + delay) if delay else "",
            "verify_next": True,
            "job": "",
        }
    )


def succeeded(
    artifact: ModelArtifact, status: ModelArtifactStatus, result: Mapping[str, Any], *, now: datetime
) -> ModelArtifactStatus | Failure:
    """The program's result as status, or a failure if it is not what it should be: anybody's image may have run."""
    try:
        told = _Result.model_validate(result)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        return Failure(reason="FactsInvalid", message=f"the Job's result: {field}: {first['msg']}", terminal=True)
    if not getattr(told, wanted := _yields(artifact)):
        message = f"the Job's result holds no {to_camel(wanted)}: its image runs another program than the operator's"
        return Failure(reason="FactsInvalid", message=message, terminal=True)
    return status.model_copy(
        update={
            "state": "Ready",
            "reason": "Ready",
            "message": "; ".join(told.notes),
            "facts": told.facts,
            "data_set": told.data_set,
            "digest": told.digest,
            "attempts": status.attempts + 1,
            "failures": 0,
            "interruptions": 0,
            "verify_next": False,
            "not_before": "",
            "ready_at": timestamp(now),
        }
    )


def failed(
    status: ModelArtifactStatus, failure: Failure, *, now: datetime, attempts_allowed: int
) -> ModelArtifactStatus:
    """Another try later, or the end: after a terminal failure or the last allowed attempt."""
    failures = status.failures + int(failure.counts)
    interruptions = 0 if failure.counts else status.interruptions + 1
    often = interruptions >= MOST_INTERRUPTIONS
    final = failure.terminal or failures >= attempts_allowed or often
    again = failure.mends_itself or not final
    return status.model_copy(
        update={
            "state": "Failed" if final else "Pending",
            "reason": failure.reason,
            "message": f"{failure.message}. It was so {interruptions} times in a row" if often else failure.message,
            "attempts": status.attempts + 1,
            "failures": failures,
            "interruptions": interruptions,
            "job": status.job if final else "",
            "verify_next": False,
            "not_before": timestamp(now + _delay(interruptions or failures)) if again else "",
        }
    )


def about_a_token(artifact: ModelArtifact, failure: Failure) -> Failure:
    """A failure of a download, tried again where another token in its Secret can help: nobody reads Secrets to see."""
    fetch = artifact.spec.fetch
    if fetch is None or fetch.token_secret_ref is None or failure.reason not in _OF_TOKENS:
        return failure
    told = (
        f"{failure.message}. It is tried again within {_LONGEST_DELAY.seconds // 60} minutes, with the token then there"
    )
    return replace(failure, message=told, mends_itself=True)


def tried_again(status: ModelArtifactStatus) -> ModelArtifactStatus:
    """The status of a failed artifact whose next attempt is due."""
    return status.model_copy(update={"job": "", "not_before": ""})


def _delay(failures: int) -> timedelta:
    doublings = min(max(failures - 1, 0), 20)
    return min(_FIRST_DELAY * (1 << doublings), _LONGEST_DELAY)


def seconds_until(moment: str, now: datetime) -> float:
    """Seconds from now until a status' time; 0 if it is past or empty."""
    if not moment:
        return 0.0
    return max(0.0, (datetime.fromisoformat(moment) - now).total_seconds())

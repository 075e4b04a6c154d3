"""The artifact reconciler: one Job at a time until the content is there, or can't be.

It is the only one that creates, judges and retries Jobs. What it learns is kept in the ModelArtifact's status; a
restarted operator goes on from there, since each attempt's Job has a name of its own.
"""

from __future__ import annotations

import logging
from datetime import datetime
from typing import TYPE_CHECKING

from pydantic import ValidationError

from specdec_operator.api.v1alpha1.model_artifact import ModelArtifact, ModelArtifactStatus
from specdec_operator.cluster.adoption import controller_of
from specdec_operator.cluster.apply import ensure_created
from specdec_operator.cluster.errors import NameTaken, NotFound
from specdec_operator.cluster.resources import (
    CONFIG_MAPS,
    EVENTS,
    JOBS,
    MODEL_ARTIFACTS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
)
from specdec_operator.pod.termination import MessageCut, Succeeded, decode
from specdec_operator.reconcile import artifact_status as statuses
from specdec_operator.reconcile.artifact_conditions import conditions_of
from specdec_operator.reconcile.artifact_status import Failure
from specdec_operator.reconcile.claims import is_leaving, leaving_in_words
from specdec_operator.reconcile.conditions import shortened
from specdec_operator.reconcile.context import timestamp
from specdec_operator.reconcile.diagnosis import MOST_EVENTS, QUIET_SECONDS, diagnose_job, diagnose_pod
from specdec_operator.reconcile.finished_jobs import delete_finished_jobs, ends_of
from specdec_operator.reconcile.job_end import failure_of, termination_message
from specdec_operator.reconcile.other_controller import LOOK_AGAIN_SECONDS
from specdec_operator.reconcile.queue import Key, Result, owning_models
from specdec_operator.reconcile.refused_write import OPERATORS_OWN, REFUSALS, explain
from specdec_operator.reconcile.status_write import write_status
from specdec_operator.resources.jobs import render_job
from specdec_operator.resources.labels import SELECTOR, retries

if TYPE_CHECKING:
    from specdec_operator.cluster.api import JsonObject
    from specdec_operator.reconcile.context import Context
    from specdec_operator.reconcile.refused_write import RefusedWrite

_LOOK_AGAIN_SECONDS = 15.0
_GARBAGE_SECONDS = 2.0
_AWAITED_SECONDS = 5.0
_OWNER_SECONDS = 2.0
"""How soon after a start it is known whose a model is."""
_log = logging.getLogger(__name__)


class ArtifactReconciler:
    """Brings ModelArtifacts to Ready or Failed."""

    def __init__(self, context: Context) -> None:
        self._context = context

    async def reconcile(self, key: Key) -> Result:
        """Bring one artifact a step further."""
        try:
            document = await self._context.api.get(MODEL_ARTIFACTS, namespace=key.namespace, name=key.name)
        except NotFound:
            return Result()
        if "deletionTimestamp" in document["metadata"]:
            return Result()
        if wait := self._not_its_own(document):
            return Result(requeue_after=wait)
        try:
            artifact = ModelArtifact.model_validate(document)
        except ValidationError as error:
            _log.warning("ModelArtifact %s does not fit this operator's schema: %s", key.name, error)
            return Result()
        status, requeue = await self._next(artifact)
        await self._write(artifact, status, live=document)
        return Result(requeue_after=requeue)

    def _not_its_own(self, document: JsonObject) -> float:
        """Seconds after which to look again at what no model of this operator uses; 0 if one does, or none at all."""
        owners = owning_models(document["metadata"]["namespace"], document["metadata"].get("ownerReferences") or ())
        responsibility = self._context.responsibility
        if not owners or any(responsibility.has(owner) for owner in owners):
            return 0
        known = all(responsibility.leaves(owner) for owner in owners)
        return LOOK_AGAIN_SECONDS if known else _OWNER_SECONDS

    async def _next(self, artifact: ModelArtifact) -> tuple[ModelArtifactStatus, float | None]:
        claim = await self._claim(artifact)
        if artifact.spec.claim_name and claim is None:
            missing = (
                f"claim {artifact.spec.claim_name} does not exist: create it, or change spec.storage or the source"
            )
            waiting = {"state": "Pending", "reason": "ClaimMissing", "message": missing}
            return artifact.status.model_copy(update=waiting), _LOOK_AGAIN_SECONDS
        if claim and is_leaving(claim) and artifact.status.state == "Pending":
            waiting = {"reason": "ClaimLeaving", "message": leaving_in_words(claim["metadata"]["name"])}
            return artifact.status.model_copy(update=waiting), _LOOK_AGAIN_SECONDS
        claim_uid = claim["metadata"]["uid"] if claim else ""
        retry = retries(artifact.metadata.annotations)
        status = statuses.started_over(artifact, claim_uid=claim_uid, retry=retry)
        status = status.model_copy(update={"claim_uid": claim_uid})
        if status.state == "Ready" or (status.state == "Failed" and not status.not_before):
            return status, None
        if wait := statuses.seconds_until(status.not_before, self._context.now()):
            return status, wait
        if status.state == "Failed":
            status = statuses.tried_again(status)
        return await self._attempt(artifact, status, claim=claim)

    async def _claim(self, artifact: ModelArtifact) -> JsonObject | None:
        if artifact.spec.claim_name is None:
            return None
        try:
            return await self._context.api.get(
                PERSISTENT_VOLUME_CLAIMS, namespace=artifact.metadata.namespace, name=artifact.spec.claim_name
            )
        except NotFound:
            return None

    async def _attempt(
        self, artifact: ModelArtifact, status: ModelArtifactStatus, *, claim: JsonObject | None
    ) -> tuple[ModelArtifactStatus, float | None]:
        if status.job:
            job = await self._job(artifact, status.job)
            if job is not None:
                return await self._judge(artifact, status, job)
            status = statuses.vanished(status, now=self._context.now())
            if wait := statuses.seconds_until(status.not_before, self._context.now()):
                return status, wait
        try:
            return await self._start(artifact, status, claim=claim)
        except REFUSALS as error:
            return _refused(status, explain(error))

    async def _job(self, artifact: ModelArtifact, name: str) -> JsonObject | None:
        try:
            return await self._context.api.get(JOBS, namespace=artifact.metadata.namespace, name=name)
        except NotFound:
            return None

    async def _start(
        self, artifact: ModelArtifact, status: ModelArtifactStatus, *, claim: JsonObject | None
    ) -> tuple[ModelArtifactStatus, float | None]:
        node, busy = await self._node_of(artifact, claim)
        if busy:
            waiting = {"state": "Pending", "reason": "VolumeInUse", "message": busy}
            return status.model_copy(update=waiting), _LOOK_AGAIN_SECONDS
        if claim and (missing := await self._awaited(artifact, claim)):
            waiting = {"state": "Pending", "reason": "ModelAwaited", "message": f"the build waits for {missing}"}
            return status.model_copy(update=waiting), _AWAITED_SECONDS
        if status.attempts > 1:
            await delete_finished_jobs(self._context.api, artifact.metadata, kept=1)
        verify = statuses.verifies(artifact, status)
        name = statuses.job_name(artifact, status)
        objects = render_job(
            artifact,
            name=name,
            templates=self._context.templates,
            hours=self._context.configuration.job_hours,
            verify=verify,
            node=node,
        )
        api, uid = self._context.api, artifact.metadata.uid
        try:
            await ensure_created(api, CONFIG_MAPS, objects.config_map, owner_uid=uid)
            await ensure_created(api, JOBS, objects.job, owner_uid=uid)
        except NameTaken as taken:
            return _name_taken(artifact, status, taken)
        running = {
            "state": "Running",
            "reason": statuses.at_work(artifact, verify=verify),
            "message": statuses.work_message(artifact, name, verify=verify),
            "job": name,
            "not_before": "",
        }
        return status.model_copy(update=running), _LOOK_AGAIN_SECONDS

    async def _awaited(self, artifact: ModelArtifact, claim: JsonObject) -> str:
        """The artifacts that a build reads and that are not in the claim, as after a loss of it; empty if all are."""
        build, name = artifact.spec.build, artifact.spec.claim_name
        if build is None:
            return ""
        read = {m.sub_path for m in (build.model, build.head, build.calibration) if m and m.claim_name == name}
        found = await self._context.api.list(
            MODEL_ARTIFACTS, namespace=artifact.metadata.namespace, label_selector=SELECTOR
        )
        return ", ".join(
            other["metadata"]["name"]
            for other in found
            if other["spec"].get("claimName") == name
            and other["spec"].get("fetch", {}).get("directory") in read
            and not _is_in(other.get("status") or {}, claim)
        )

    async def _node_of(self, artifact: ModelArtifact, claim: JsonObject | None) -> tuple[str | None, str]:
        """The node that a single-node volume is on, and why the Job must wait, if it must."""
        modes = set(claim["spec"].get("accessModes", [])) if claim else set()
        if claim is None or "ReadWriteMany" in modes:
            return None, ""
        pods = await self._context.api.list(PODS, namespace=artifact.metadata.namespace)
        users = [pod for pod in pods if _mounts(pod, claim["metadata"]["name"])]
        if users and "ReadWriteOncePod" in modes:
            return None, f"claim {claim['metadata']['name']} is mounted by pod {users[0]['metadata']['name']}"
        nodes = {pod["spec"]["nodeName"] for pod in users if pod["spec"].get("nodeName")}
        return (nodes.pop() if nodes else None), ""

    async def _judge(
        self, artifact: ModelArtifact, status: ModelArtifactStatus, job: JsonObject
    ) -> tuple[ModelArtifactStatus, float | None]:
        ends = ends_of(job)
        if not ends:
            return await self._watch(artifact, status, job)
        pods = await self._pods(job)
        if "Complete" in ends:
            return self._completed(artifact, status, pods)
        failure = statuses.about_a_token(artifact, failure_of(job, pods))
        if status.verify_next:
            failure = Failure(reason=statuses.NOT_PUBLISHED, message=failure.message, terminal=False)
        return self._failed(status, failure)

    def _completed(
        self, artifact: ModelArtifact, status: ModelArtifactStatus, pods: list[JsonObject]
    ) -> tuple[ModelArtifactStatus, float | None]:
        message = termination_message(pods)
        try:
            outcome = decode(message)
        except MessageCut:
            # What the Job made is on the volume: another look is cheap, another build is not.
            if status.failures + 1 >= self._context.configuration.job_attempts:
                lost = "the Jobs end well, but their termination messages are cut or lost; see the pods' logs"
                return self._failed(status, Failure(reason="MessageLost", message=lost, terminal=True))
            return statuses.vanished(status, now=self._context.now()), 1.0
        if not isinstance(outcome, Succeeded):
            return self._failed(status, Failure(reason=outcome.reason, message=outcome.message, terminal=True))
        done = statuses.succeeded(artifact, status, outcome.result, now=self._context.now())
        if isinstance(done, Failure):
            return self._failed(status, done)
        return done, None

    def _failed(self, status: ModelArtifactStatus, failure: Failure) -> tuple[ModelArtifactStatus, float | None]:
        now = self._context.now()
        allowed = self._context.configuration.job_attempts
        ended = statuses.failed(status, failure, now=now, attempts_allowed=allowed)
        return ended, (statuses.seconds_until(ended.not_before, now) + 1 if ended.not_before else None)

    async def _watch(
        self, artifact: ModelArtifact, status: ModelArtifactStatus, job: JsonObject
    ) -> tuple[ModelArtifactStatus, float | None]:
        verify = statuses.verifies(artifact, status)
        running = {
            "state": "Running",
            "reason": statuses.at_work(artifact, verify=verify),
            "message": statuses.work_message(artifact, status.job, verify=verify),
        }
        pods = await self._pods(job)
        if any(pod.get("status", {}).get("phase") in ("Running", "Succeeded", "Failed") for pod in pods):
            return status.model_copy(update=running), _LOOK_AGAIN_SECONDS
        stuck = await self._stuck(job, pods)
        return status.model_copy(update={**running, **stuck}), _LOOK_AGAIN_SECONDS

    async def _stuck(self, job: JsonObject, pods: list[JsonObject]) -> dict[str, str]:
        subject = pods[0] if pods else job
        born = datetime.fromisoformat(subject["metadata"]["creationTimestamp"])
        quiet = (self._context.now() - born).total_seconds()
        events = []
        if quiet >= QUIET_SECONDS:
            events = await self._context.api.list(
                EVENTS,
                namespace=job["metadata"]["namespace"],
                field_selector=f"regarding.uid={subject['metadata']['uid']}",
                at_most=MOST_EVENTS,
            )
        found = diagnose_pod(pods[0], events, age=quiet) if pods else diagnose_job(job, events)
        return {"reason": found.reason, "message": found.message} if found else {}

    async def _pods(self, job: JsonObject) -> list[JsonObject]:
        """The pods that the Job made; another Job of its name may have left some, and labels are anybody's to set."""
        uid = job["metadata"]["uid"]
        found = await self._context.api.list(
            PODS,
            namespace=job["metadata"]["namespace"],
            label_selector=f"batch.kubernetes.io/controller-uid={uid}",
        )
        return [pod for pod in found if (controller_of(pod) or {}).get("uid") == uid]

    async def _write(self, artifact: ModelArtifact, status: ModelArtifactStatus, *, live: JsonObject) -> None:
        status = status.model_copy(update={"message": shortened(status.message)})
        if status.state != artifact.status.state or status.reason != artifact.status.reason:
            await self._announce(status, live)
        generation, before = artifact.metadata.generation, artifact.status.conditions
        conditions = conditions_of(status, before, generation=generation, now=timestamp(self._context.now()))
        observed = status.model_copy(update={"observed_generation": generation, "conditions": conditions})
        body = observed.model_dump(by_alias=True, exclude_none=True, mode="json")
        await write_status(self._context, MODEL_ARTIFACTS, body, live=live)

    async def _announce(self, status: ModelArtifactStatus, live: JsonObject) -> None:
        kind = "Warning" if status.state == "Failed" or status.reason in OPERATORS_OWN else "Normal"
        note = status.message or f"the content is there after {status.attempts} attempt(s)"
        await self._context.events.record(live, kind=kind, reason=status.reason, note=note, action="Acquire")


def _name_taken(
    artifact: ModelArtifact, status: ModelArtifactStatus, taken: NameTaken
) -> tuple[ModelArtifactStatus, float | None]:
    if taken.controller == f"ModelArtifact/{artifact.metadata.name}":
        leaving = f"waiting for the garbage collector: {taken.kind} {taken.name} is of an artifact that is gone"
        waiting = {"state": "Pending", "reason": "PredecessorLeaving", "message": leaving}
        return status.model_copy(update=waiting), _GARBAGE_SECONDS
    conflict = {"state": "Failed", "reason": "NameConflict", "message": f"{taken}; remove or rename it"}
    return status.model_copy(update=conflict), None


def _refused(status: ModelArtifactStatus, why: RefusedWrite) -> tuple[ModelArtifactStatus, float | None]:
    state = "Failed" if why.terminal else "Pending"
    said = {"state": state, "reason": why.reason, "message": why.message}
    return status.model_copy(update=said), why.requeue_after


def _is_in(status: JsonObject, claim: JsonObject) -> bool:
    """Whether an artifact's content is in this very claim."""
    return bool(status.get("state") == "Ready" and status.get("claimUid") == claim["metadata"]["uid"])


def _mounts(pod: JsonObject, claim: str) -> bool:
    if pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
        return False
    volumes = pod["spec"].get("volumes") or []
    return any((volume.get("persistentVolumeClaim") or {}).get("claimName") == claim for volume in volumes)

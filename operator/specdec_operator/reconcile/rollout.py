"""The serving side: which revision the Deployment runs, and what became of it.

A revision that did not come to serve is remembered in status and not tried again; the last good one returns. Without
one, the pods go: they would hold GPUs for nothing.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from specdec_operator.api.v1alpha1.labels import MANAGED_BY
from specdec_operator.api.v1alpha1.status import FailedRevision
from specdec_operator.cluster.adoption import controller_of, is_stray
from specdec_operator.cluster.apply import ensure_applied, ensure_created
from specdec_operator.cluster.errors import NameTaken, NotFound
from specdec_operator.cluster.foreign import without_foreign
from specdec_operator.cluster.resources import (
    CONFIG_MAPS,
    CONTROLLER_REVISIONS,
    DEPLOYMENTS,
    SERVICES,
)
from specdec_operator.reconcile.conditions import shortened
from specdec_operator.reconcile.diagnosis import Diagnosis
from specdec_operator.reconcile.halt import Halt
from specdec_operator.reconcile.lost_content import KINDS as LOST_KINDS
from specdec_operator.reconcile.observation import Observer, revision_of
from specdec_operator.reconcile.trial_pod import try_pod
from specdec_operator.resources.labels import MODEL, OPERATOR, serving_name
from specdec_operator.resources.serving import Revision, controller_revision, revision_files, stored_revision
from specdec_operator.resources.workload import deployment, service

if TYPE_CHECKING:
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModel
    from specdec_operator.api.v1alpha1.status import Condition, ProofStatus
    from specdec_operator.cluster.api import JsonObject
    from specdec_operator.cluster.resources import ResourceType
    from specdec_operator.reconcile.context import Context
    from specdec_operator.reconcile.observation import Serving

KEPT_REVISIONS = 5
FAILED_REVISION_LIMIT = 1024
"""Characters of a failed revision's message that the API takes."""
_OWN_CONTAINERS = tuple(("spec", "template", "spec", kind) for kind in ("initContainers", "containers"))
_LOOK_AGAIN_SECONDS = 60.0
_GARBAGE_SECONDS = 2.0


class Rollout:
    """One model's serving side, during one reconcile."""

    def __init__(self, context: Context, model: SpeculativeModel) -> None:
        self._context = context
        self._model = model
        self._observer = Observer(context.api, model.metadata, now=context.now)

    async def stored(self, name: str) -> Revision | None:
        """A revision as it was first rendered."""
        if not name:
            return None
        document = await self._get(CONTROLLER_REVISIONS, name)
        return stored_revision(document) if document and self._is_mine(document) else None

    async def keep(self, revision: Revision) -> Revision:
        """Store a revision, or return the stored one of that name: a newer renderer rolls no pod."""
        live = await self._get(CONTROLLER_REVISIONS, revision.name)
        number = live["revision"] if live else 1 + max((r["revision"] for r in await self._revisions()), default=0)
        document = await self._create(
            CONTROLLER_REVISIONS, controller_revision(self._model, revision, number=number), live=live
        )
        kept = stored_revision(document)
        files = revision_files(self._model, kept, uid=document["metadata"]["uid"])
        there = await self._get(CONFIG_MAPS, files["metadata"]["name"])
        await self._create(CONFIG_MAPS, files, owner_uid=document["metadata"]["uid"], live=there)
        return kept

    async def apply(self, revision: Revision, *, stopped: bool = False, replacing: bool = False) -> Serving:
        """Make Deployment and Service what a revision says, and look at what they are.

        Args:
            stopped: Run no pod of it: it failed and there is nothing to return to.
            replacing: Look first whether its pods would be taken: one that serves goes for each.
        """
        body = deployment(self._model, revision, templates=self._context.templates)
        if stopped:
            body["spec"]["replicas"] = 0
        live = await self._get(DEPLOYMENTS, body["metadata"]["name"])
        if live and replacing:
            await self._try_pod(body, live)
        live_service = await self._apply(
            SERVICES,
            service(self._model, templates=self._context.templates),
            live=await self._get(SERVICES, body["metadata"]["name"]),
        )
        live = await self._apply(DEPLOYMENTS, body, live=live)
        return await self._observer.observe(live, live_service)

    async def _try_pod(self, body: JsonObject, live: JsonObject) -> None:
        template, running = body["spec"]["template"], live["spec"]["template"]
        serves = body["spec"]["replicas"] and live.get("status", {}).get("readyReplicas")
        if serves and self._model.spec.update.strategy == "Replace" and revision_of(template) != revision_of(running):
            await try_pod(self._context.api, body, running=live)

    async def running(self) -> Revision | None:
        """The revision that the Deployment runs; None if there is no Deployment, or the revision is not stored."""
        live = await self._get(DEPLOYMENTS, serving_name(self._model.metadata.name))
        if live is None or not self._is_mine(live):
            return None
        return await self.stored(revision_of(live["spec"]["template"]))

    async def observed(self) -> Serving | None:
        """The serving side as it is, with nothing written; None if there is none."""
        live = await self._get(DEPLOYMENTS, serving_name(self._model.metadata.name))
        if live is None or not self._is_mine(live):
            return None
        live_service = await self._get(SERVICES, serving_name(self._model.metadata.name))
        return await self._observer.observe(live, live_service or {})

    async def prune(self, *, keep: set[str]) -> None:
        """Remove revisions that are long past."""
        old = sorted(await self._revisions(), key=lambda r: r["revision"], reverse=True)[KEPT_REVISIONS:]
        for document in old:
            metadata = document["metadata"]
            if metadata["name"] not in keep:
                await self._context.api.delete(
                    CONTROLLER_REVISIONS, namespace=metadata["namespace"], name=metadata["name"], uid=metadata["uid"]
                )

    def failure(self, serving: Serving, *, can_return: bool) -> FailedRevision | None:
        """Why the revision in the Deployment will not come to serve; None while it may.

        Args:
            can_return: Whether there is a revision to return to. Without one, waiting for a node costs nobody anything:
                a pod's time then counts from when it got one.
        """
        if serving.updated_ready or not serving.wanted:
            return None
        if serving.trouble and serving.trouble.reason in LOST_KINDS:
            return None  # what is missing is made again, and the pods' checks find it then
        if serving.trouble and serving.trouble.terminal:
            return _failed(serving, serving.trouble)
        if serving.deadline_exceeded and (can_return or self._had_its_time(serving)):
            cause = serving.trouble or Diagnosis(
                reason="StartupTimeout",
                message="no pod answered within spec.update.startupMinutes "
                f"({self._model.spec.update.startup_minutes})",
            )
            return _failed(serving, cause)
        return None

    def misproven(self, serving: Serving, served: Condition, proof: ProofStatus | None) -> FailedRevision | None:
        """Why a revision with ready pods counts as failed: its proof has been wrong for as long as a start may take.

        Args:
            served: What this reconcile's proof found.
            proof: Since when it has been wrong; the condition's time tells only since when it has not been right.
        """
        if served.status != "False" or proof is None or not proof.wrong_since:
            return None
        since = datetime.fromisoformat(proof.wrong_since)
        if self._context.now() - since < timedelta(minutes=self._model.spec.update.startup_minutes):
            return None
        return _failed(serving, served)

    def _had_its_time(self, serving: Serving) -> bool:
        """Whether a pod has been on its node, and not ready, for longer than it may take to start."""
        latest = self._context.now() - timedelta(minutes=self._model.spec.update.startup_minutes)
        starting = [pod for pod in serving.own_pods if not _since(pod, "Ready")]
        placed = [_since(pod, "PodScheduled") for pod in starting]
        return any(moment is not None and moment < latest for moment in placed)

    async def _revisions(self) -> list[JsonObject]:
        found = await self._context.api.list(
            CONTROLLER_REVISIONS,
            namespace=self._model.metadata.namespace,
            label_selector=f"{MODEL}={self._model.metadata.name}",
        )
        return [document for document in found if self._is_mine(document)]

    def _is_mine(self, document: JsonObject) -> bool:
        """Whether an object is this model's, or was, and is taken up again by what is applied next."""
        controller = controller_of(document)
        if controller is not None:
            return bool(controller["uid"] == self._model.metadata.uid)
        labels = {MANAGED_BY: OPERATOR, MODEL: self._model.metadata.name}
        return is_stray(document, manager=self._context.api.field_manager, labels=labels)

    async def _get(self, resource: ResourceType, name: str) -> JsonObject | None:
        try:
            return await self._context.api.get(resource, namespace=self._model.metadata.namespace, name=name)
        except NotFound:
            return None

    async def _create(
        self, resource: ResourceType, body: JsonObject, *, live: JsonObject | None, owner_uid: str | None = None
    ) -> JsonObject:
        try:
            return await ensure_created(
                self._context.api, resource, body, owner_uid=owner_uid or self._model.metadata.uid, live=live
            )
        except NameTaken as taken:
            raise self._conflict(taken) from taken

    async def _apply(self, resource: ResourceType, body: JsonObject, *, live: JsonObject | None) -> JsonObject:
        if resource is DEPLOYMENTS and live is not None and self._is_mine(live):
            live = await self._restored(live, desired=body)
        try:
            applied = await ensure_applied(
                self._context.api, resource, body, owner_uid=self._model.metadata.uid, live=live
            )
        except NameTaken as taken:
            raise self._conflict(taken) from taken
        return applied.object

    async def _restored(self, live: JsonObject, *, desired: JsonObject) -> JsonObject:
        """The Deployment without what others put into the operator's containers; sidecars stay."""
        stored, restored = await without_foreign(
            self._context.api, DEPLOYMENTS, live, desired=desired, lists=_OWN_CONTAINERS
        )
        if restored:
            note = f"put back what others had changed in containers that were proven without it: {', '.join(restored)}"
            await self._context.events.record(
                stored, kind="Warning", reason="ForeignFieldsRemoved", note=note, action="Reconcile"
            )
        return stored

    def _conflict(self, taken: NameTaken) -> Halt:
        predecessors = (
            f"SpeculativeModel/{self._model.metadata.name}",
            f"ControllerRevision/{taken.name.rpartition('-')[0]}",
        )
        if taken.controller in predecessors:
            leaving = f"waiting for the garbage collector: {taken.kind} {taken.name} is of a model that is gone"
            return Halt("Available", "PredecessorLeaving", leaving, requeue_after=_GARBAGE_SECONDS)
        message = f"{taken}. It is left alone"
        return Halt("Accepted", "NameConflict", message, terminal=True, requeue_after=_LOOK_AGAIN_SECONDS)


def _failed(serving: Serving, cause: Diagnosis | Condition) -> FailedRevision:
    message = shortened(cause.message, FAILED_REVISION_LIMIT)
    return FailedRevision(name=serving.revision, reason=cause.reason, message=message)


def _since(pod: JsonObject, condition: str) -> datetime | None:
    """Since when a pod's condition has been True; None if it is not."""
    for found in pod.get("status", {}).get("conditions") or []:
        if found["type"] == condition and found["status"] == "True":
            return datetime.fromisoformat(found["lastTransitionTime"])
    return None

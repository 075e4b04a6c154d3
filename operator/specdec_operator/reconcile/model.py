"""The model reconciler: prepare a revision, serve it, prove it, say so.

One way through: get, parse, prepare (acquire, facts, plan, revision), apply, observe, prove, status. It reads live
state only; the same state twice sends no write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import ValidationError

from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModel, parse
from specdec_operator.cluster.errors import NotFound
from specdec_operator.cluster.resources import SPECULATIVE_MODELS
from specdec_operator.reconcile.acceptance import judge
from specdec_operator.reconcile.conditions import Conditions
from specdec_operator.reconcile.context import timestamp
from specdec_operator.reconcile.halt import Halt
from specdec_operator.reconcile.lost_content import lost_content
from specdec_operator.reconcile.model_status import Findings, render_status, set_available, set_ready
from specdec_operator.reconcile.other_controller import LOOK_AGAIN_SECONDS, announce_other, claim, other_controller
from specdec_operator.reconcile.preparation import Preparation
from specdec_operator.reconcile.proving import Proving
from specdec_operator.reconcile.queue import Key, Result
from specdec_operator.reconcile.refused_write import OPERATORS_OWN, refusals_halt
from specdec_operator.reconcile.rollout import Rollout
from specdec_operator.reconcile.status_write import write_status
from specdec_operator.reconcile.unreadable import refuse_unreadable
from specdec_operator.reconcile.usage import Usage

if TYPE_CHECKING:
    from specdec_operator.api.v1alpha1.status import Condition
    from specdec_operator.cluster.api import JsonObject
    from specdec_operator.reconcile.context import Context
    from specdec_operator.reconcile.observation import Serving
    from specdec_operator.resources.serving import Revision

_LOOK_AGAIN_SECONDS = 15.0
_QUIET_TYPES = frozenset({"Available", "Reconciling"})
"""Conditions whose changes other conditions' Events tell already."""


class ModelReconciler:
    """Brings SpeculativeModels to serving."""

    def __init__(self, context: Context) -> None:
        self._context = context

    async def reconcile(self, key: Key) -> Result:
        """Bring one model a step further."""
        try:
            document = await self._context.api.get(SPECULATIVE_MODELS, namespace=key.namespace, name=key.name)
        except NotFound:
            self._forget(key)
            self._context.responsibility.forget(key)
            return Result()
        controller = (document.get("status") or {}).get("controller") or ""
        if "deletionTimestamp" in document["metadata"]:
            if controller == self._context.configuration.instance:
                self._context.responsibility.take(key)
            return Result()
        if other := await other_controller(self._context, controller):
            self._forget(key)
            self._context.responsibility.leave(key, other)
            await announce_other(self._context, document, other)
            return Result(requeue_after=LOOK_AGAIN_SECONDS)
        return await self._bring_on(key, document)

    async def _bring_on(self, key: Key, document: JsonObject) -> Result:
        try:
            model = parse(document)
        except ValidationError as error:
            await refuse_unreadable(self._context, document, error)
            self._context.responsibility.take(key)
            return Result()
        if model.status.controller != self._context.configuration.instance:
            document = await claim(self._context, model, document)
            model = parse(document)
        self._context.responsibility.take(key)
        return await _Pass(self._context, model, live=document).run()

    def _forget(self, key: Key) -> None:
        """A model that is gone, or another operator's, has no proof and no figures here."""
        self._context.proofs.forget(key)
        self._context.gauges.acceptance(namespace=key.namespace, name=key.name, ratio=None)
        self._context.gauges.conditions(namespace=key.namespace, name=key.name, conditions=())


class _Pass:
    """One reconcile of one model."""

    def __init__(self, context: Context, model: SpeculativeModel, *, live: JsonObject) -> None:
        self._context = context
        self._model = model
        self._live = live
        self._conditions = Conditions(
            model.status.conditions, generation=model.metadata.generation, now=timestamp(context.now())
        )
        self._rollout = Rollout(context, model)
        usage = Usage(context, model)
        self._findings = Findings(
            usage=usage,
            preparation=Preparation(context, model, usage=usage, conditions=self._conditions),
            current_revision=model.status.current_revision,
            failed_revision=model.status.failed_revision,
            proof=model.status.proof,
        )

    async def run(self) -> Result:
        """Go the way and write down where it ended."""
        halt, requeue = await self._advance()
        # A change that is refused takes nothing from what serves.
        if halt and not (halt.condition == "Available" and self._conditions.holds("Available")):
            self._conditions.set(halt.condition, "False", halt.reason, halt.message)
        self._judge()
        set_ready(self._conditions, self._model, self._findings, halt)
        await self._write()
        # What a failed revision leads to is done once it is remembered: a process that is killed forgets nothing.
        failed = self._findings.failed_revision
        at_once = 0.0 if failed and failed != self._model.status.failed_revision else None
        waits = [wait for wait in (requeue, halt.requeue_after if halt else None, at_once) if wait is not None]
        return Result(requeue_after=min(waits, default=None))

    def _judge(self) -> None:
        """Say whether the pair's drafts are accepted, where the release reports it."""
        findings, metadata = self._findings, self._model.metadata
        serving, proof = findings.serving, findings.proof
        is_fresh = serving and proof and proof.revision == serving.revision and not proof.wrong_since
        fresh = proof if is_fresh else None
        reported = bool(findings.prepared.plan.files.counted) if findings.prepared else None
        verdict = findings.verdict = judge(self._model.spec.speculation.method, fresh, is_reported=reported)
        if verdict:
            self._conditions.set("PairEffective", verdict.status, verdict.reason, verdict.message)
        ratio = verdict.ratio if verdict else None
        self._context.gauges.acceptance(namespace=metadata.namespace, name=metadata.name, ratio=ratio)

    async def _advance(self) -> tuple[Halt | None, float | None]:
        """Prepare, then serve: what serves is kept up even while preparing halts."""
        halted = await self._prepare()
        try:
            await self._serve_or_observe()
            with refusals_halt("Served"):
                await self._doubt()
                requeue = await self._prove()
            if halted is None and self._conditions.holds("Served"):
                with refusals_halt("Ready"):
                    await self._tidy()
        except Halt as conflict:
            return halted or conflict, conflict.requeue_after
        return halted, requeue

    async def _prepare(self) -> Halt | None:
        try:
            self._findings.prepared = await self._findings.preparation.run()
        except Halt as halt:
            return halt
        return None

    async def _serve_or_observe(self) -> None:
        """Serve; if that is refused, what runs goes on, and status says so."""
        try:
            with refusals_halt("Available"):
                await self._serve()
        except Halt:
            self._findings.serving = await self._kept_or_observed()
            if self._findings.serving:
                set_available(self._conditions, self._findings.serving)
            raise

    async def _kept_or_observed(self) -> Serving | None:
        try:
            with refusals_halt("Available"):
                return await self._keep(await self._rollout.running())
        except Halt:
            with refusals_halt("Available"):
                return await self._rollout.observed()

    async def _keep(self, revision: Revision | None) -> Serving | None:
        """What runs goes on, its files are repaired, and replicas and suspend are obeyed."""
        if revision is None:
            return await self._rollout.observed()
        failed = self._findings.failed_revision
        stopped = failed is not None and failed.name == revision.name
        return await self._rollout.apply(await self._rollout.keep(revision), stopped=stopped)

    async def _serve(self) -> None:
        """Swap in what is prepared; without it, or if it failed before, keep the last good revision."""
        findings = self._findings
        good = await self._rollout.stored(findings.current_revision)
        if findings.prepared is None:
            findings.serving = await self._keep(good or await self._rollout.running())
            return
        wanted = await self._rollout.keep(findings.prepared.revision)
        findings.update_revision = wanted.name
        if findings.failed_revision and findings.failed_revision.name == wanted.name:
            findings.serving = await self._fall_back(good, wanted)
            return
        findings.failed_revision = None
        await self._swap(wanted, good)

    async def _swap(self, wanted: Revision, good: Revision | None) -> None:
        findings = self._findings
        findings.serving = await self._rollout.apply(wanted, replacing=True)
        if wanted.name != findings.current_revision:
            findings.failed_revision = self._rollout.failure(findings.serving, can_return=good is not None)

    async def _fall_back(self, good: Revision | None, failed: Revision) -> Serving:
        if good and good.name != failed.name:
            return await self._rollout.apply(await self._rollout.keep(good))
        return await self._rollout.apply(failed, stopped=True)

    async def _prove(self) -> float | None:
        findings, serving = self._findings, self._findings.serving
        if serving is None:
            return None
        set_available(self._conditions, serving)
        if not serving.updated_ready:
            return _LOOK_AGAIN_SECONDS if serving.wanted else None
        if findings.prepared is None or serving.revision != findings.update_revision:
            return None
        proving = Proving(self._context, self._model, self._conditions)
        await proving.run(serving, findings.prepared.plan.files)
        findings.proof = proving.proof
        if self._denied():
            await self._give_up(serving)
        elif not proving.is_pending:
            findings.current_revision = serving.revision
        return proving.requeue_after

    async def _give_up(self, serving: Serving) -> None:
        """Call a revision failed whose pods have answered wrongly for too long, if there is one to return to."""
        served = self._conditions.get("Served")
        failure = self._rollout.misproven(serving, served, self._findings.proof) if served else None
        good = await self._rollout.stored(self._findings.current_revision) if failure else None
        if failure and good and good.name != failure.name:
            self._findings.failed_revision = failure

    def _denied(self) -> bool:
        """Whether the proof found something wrong; that it can't be made from here is no reason to return."""
        served = self._conditions.get("Served")
        return served is None or served.status == "False"

    async def _doubt(self) -> None:
        """Put what pods did not find in doubt; their checks run again until it is there."""
        for lost in lost_content(self._findings.serving.pods if self._findings.serving else ()):
            await self._findings.usage.doubt(lost)

    async def _tidy(self) -> None:
        await self._findings.usage.release_others()
        await self._rollout.prune(keep={self._findings.current_revision, self._findings.update_revision})

    async def _write(self) -> None:
        status = render_status(self._model, self._conditions, self._findings, self._context.configuration)
        self._context.gauges.conditions(
            namespace=self._model.metadata.namespace,
            name=self._model.metadata.name,
            conditions=self._conditions.in_order(),
        )
        await write_status(self._context, SPECULATIVE_MODELS, status, live=self._live)
        stalled = self._conditions.holds("Stalled")
        for condition in self._conditions.changed():
            repeated = condition.type == "Ready" and condition.status != "True"
            if condition.type not in _QUIET_TYPES and condition.status != "Unknown" and not repeated:
                await self._announce(condition, stalled=stalled)

    async def _announce(self, condition: Condition, *, stalled: bool) -> None:
        useless = condition.type == "PairEffective" and condition.status == "False"
        somebody_must_act = condition.type == "Stalled" or (stalled and condition.status == "False")
        bad = somebody_must_act or useless or condition.reason in OPERATORS_OWN
        await self._context.events.record(
            self._live,
            kind="Warning" if bad else "Normal",
            reason=condition.reason,
            note=f"{condition.type}={condition.status}: {condition.message}",
            action="Reconcile",
        )

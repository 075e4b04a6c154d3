"""From a spec to a revision that can serve: models, pair, engines, dry assembly. Nothing here touches a serving pod."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from specdec_operator.api.v1alpha1.status import Pin
from specdec_operator.cluster.errors import AlreadyExists, NotFound
from specdec_operator.cluster.resources import PERSISTENT_VOLUME_CLAIMS
from specdec_operator.planning.acquire import acquire, commit_pins
from specdec_operator.planning.admission import admit
from specdec_operator.planning.calibration import acquire_texts
from specdec_operator.planning.engines import plan_engines
from specdec_operator.planning.pair import check_pair
from specdec_operator.planning.plan import claims_of, plan_serving
from specdec_operator.planning.refusal import Refused
from specdec_operator.reconcile.halt import Halt
from specdec_operator.reconcile.refused_write import refusals_halt
from specdec_operator.resources.labels import REFRESH, RESTART
from specdec_operator.resources.serving import render_revision
from specdec_operator.resources.workload import store_claim

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from specdec_operator.api.v1alpha1.model_artifact import ModelArtifact
    from specdec_operator.api.v1alpha1.model_facts import DataSetFacts, ModelFacts
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModel
    from specdec_operator.api.v1alpha1.status import ConditionType
    from specdec_operator.cluster.api import JsonObject
    from specdec_operator.planning.acquire import ArtifactRequest
    from specdec_operator.planning.plan import ServingPlan
    from specdec_operator.planning.resolution import Resolution
    from specdec_operator.reconcile.conditions import Conditions
    from specdec_operator.reconcile.context import Context
    from specdec_operator.reconcile.usage import Usage
    from specdec_operator.resources.serving import Revision
    from specdec_operator.runtimes.serving import ServingFiles


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A revision that may be swapped in."""

    plan: ServingPlan
    revision: Revision


class Preparation:
    """One model's way to a revision, during one reconcile.

    Attributes:
        resolution: What the spec was resolved to, once it was.
        pins: What the spec left open, as far as it is known.
    """

    def __init__(self, context: Context, model: SpeculativeModel, *, usage: Usage, conditions: Conditions) -> None:
        self._context = context
        self._model = model
        self._usage = usage
        self._conditions = conditions
        self.resolution: Resolution | None = None
        self.pins: tuple[Pin, ...] = tuple(model.status.pins)

    async def run(self) -> Prepared:
        """Go as far as possible.

        Raises:
            Halt: Something is refused, failed or still being made.
        """
        resolution = self._resolve()
        with refusals_halt("ModelsCached"):
            await self._store(resolution)
        models = acquire(
            self._model.spec,
            resolution,
            configuration=self._context.configuration,
            pins=self._model.status.pins,
            refresh=self._model.metadata.annotations.get(REFRESH, ""),
        )
        texts = self._texts(resolution)
        self._keep_commits((*models, *texts), commits={})
        facts, data_sets = await self._facts((*models, *texts))
        self._pair(resolution, facts)
        engines = self._plan_engines(resolution, facts, data_sets, (*models, *texts))
        digests = await self._engines(engines)
        plan = plan_serving(
            self._model.spec,
            resolution,
            facts=facts,
            models=models,
            engines=engines,
            engine_digests=digests,
            single_node=await self._single_node(claims_of((*models, *engines))),
        )
        self.pins = (*self.pins, *derived_pins(plan.files))
        assembly = (await self._ready((plan.assembly,), condition="EnginesReady"))["assembly"]
        built = _told(engines) if engines else "this backend builds no engine"
        self._conditions.set(
            "EnginesReady", "True", "Built" if engines else "NotNeeded", f"{built}; repository assembled"
        )
        revision = render_revision(
            self._model,
            plan,
            assembly_digest=assembly.status.digest,
            templates=self._context.templates,
            restart=self._model.metadata.annotations.get(RESTART, ""),
        )
        return Prepared(plan=plan, revision=revision)

    def _resolve(self) -> Resolution:
        try:
            resolution = admit(
                self._model,
                table=self._context.table,
                configuration=self._context.configuration,
                refresh=self._model.metadata.annotations.get(REFRESH, ""),
            )
        except Refused as refused:
            raise _halt("Accepted", refused) from refused
        self.resolution = resolution
        self.pins = resolution.pins
        simulated = " (a simulator: no GPU is used)" if resolution.release.simulator else ""
        message = f"{resolution.backend} of release {resolution.release.name}{simulated}"
        self._conditions.set("Accepted", "True", "Accepted", message)
        return resolution

    async def _store(self, resolution: Resolution) -> None:
        claim = resolution.storage.claim if resolution.storage else None
        if claim is None:
            return
        namespace = self._model.metadata.namespace
        try:
            await self._context.api.get(PERSISTENT_VOLUME_CLAIMS, namespace=namespace, name=claim.claim_name)
        except NotFound:
            try:
                await self._context.api.create(PERSISTENT_VOLUME_CLAIMS, store_claim(claim, namespace=namespace))
            except AlreadyExists:
                return

    async def _single_node(self, claims: Iterable[str]) -> frozenset[str]:
        """Those of the claims whose volume one node mounts at a time."""
        namespace = self._model.metadata.namespace
        found = {}
        for claim in sorted(claims):
            try:
                found[claim] = await self._context.api.get(PERSISTENT_VOLUME_CLAIMS, namespace=namespace, name=claim)
            except NotFound:
                continue  # its artifact says so
        return frozenset(name for name, claim in found.items() if _by_one_node(claim))

    async def _facts(self, wanted: Sequence[ArtifactRequest]) -> tuple[dict[str, ModelFacts], dict[str, DataSetFacts]]:
        artifacts = await self._ready(wanted, condition="ModelsCached")
        facts = {role: artifact.status.facts for role, artifact in artifacts.items() if artifact.status.facts}
        texts = {role: artifact.status.data_set for role, artifact in artifacts.items() if artifact.status.data_set}
        self._keep_commits(wanted, commits={role: artifact.status.commit for role, artifact in artifacts.items()})
        held = ", ".join(f"{role} {fact.architecture}" for role, fact in facts.items())
        self._conditions.set("ModelsCached", "True", "Cached", held)
        return facts, texts

    def _keep_commits(self, models: Sequence[ArtifactRequest], *, commits: Mapping[str, str]) -> None:
        resolved = self.resolution.pins if self.resolution else ()
        self.pins = (*resolved, *commit_pins(models, self._model.status.pins, commits=commits))

    def _texts(self, resolution: Resolution) -> tuple[ArtifactRequest, ...]:
        return acquire_texts(
            self._model.spec,
            resolution,
            configuration=self._context.configuration,
            pins=self._model.status.pins,
            refresh=self._model.metadata.annotations.get(REFRESH, ""),
        )

    def _pair(self, resolution: Resolution, facts: dict[str, ModelFacts]) -> None:
        try:
            verdict = check_pair(self._model.spec, resolution, facts)
        except Refused as refused:
            raise _halt("PairVerified", refused) from refused
        self._conditions.set("PairVerified", "True", verdict.reason, verdict.message)

    def _plan_engines(
        self,
        resolution: Resolution,
        facts: dict[str, ModelFacts],
        data_sets: dict[str, DataSetFacts],
        models: Sequence[ArtifactRequest],
    ) -> tuple[ArtifactRequest, ...]:
        places = {model.role: model.yields for model in models if model.yields}
        try:
            return plan_engines(self._model.spec, resolution, facts=facts, models=places, data_sets=data_sets)
        except Refused as refused:
            raise _halt("PairVerified", refused) from refused

    async def _engines(self, engines: Sequence[ArtifactRequest]) -> dict[str, str]:
        artifacts = await self._ready(engines, condition="EnginesReady")
        return {role: artifact.status.digest for role, artifact in artifacts.items()}

    async def _ready(
        self, requests: Sequence[ArtifactRequest], *, condition: ConditionType
    ) -> dict[str, ModelArtifact]:
        with refusals_halt(condition):
            held = await self._usage.hold(requests)
        ended = {role: artifact for role, artifact in held.items() if artifact.status.state == "Failed"}
        waiting = {role: artifact for role, artifact in held.items() if artifact.status.state != "Ready"}
        for role, artifact in (ended or waiting).items():
            status = artifact.status
            said = f"{role} ({artifact.metadata.name}): {status.message or status.reason}"
            if ended:
                said += (
                    f". Then change the spec, or ask again: kubectl annotate specmodel/{self._model.metadata.name} "
                    "specdec.dev/retry=1 --overwrite (each new value asks once)"
                )
            raise Halt(condition, status.reason, said, terminal=bool(ended))
        return held


def _by_one_node(claim: JsonObject) -> bool:
    return not {"ReadWriteMany", "ReadOnlyMany"} & set(claim["spec"].get("accessModes") or [])


def derived_pins(files: ServingFiles) -> tuple[Pin, ...]:
    """What the backend needs other than the spec says."""
    return tuple(Pin(name=derived.name, value=derived.value, reason=derived.reason) for derived in files.derived)


def _told(engines: Sequence[ArtifactRequest]) -> str:
    made = sum(engine.spec.build is not None for engine in engines)
    parts = ((made, "built"), (len(engines) - made, "inspected"))
    return ", ".join(f"{count} engine(s) {done}" for count, done in parts if count)


def _halt(condition: ConditionType, refused: Refused) -> Halt:
    first = refused.refusals[0]
    return Halt(condition, first.reason, "; ".join(str(refusal) for refusal in refused.refusals), terminal=True)

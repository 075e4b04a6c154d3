"""From a spec to a revision that can serve: models, pair, engines, dry assembly. Nothing here touches a serving pod."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from specdec_operator.api.v1alpha1.status import Pin
from specdec_operator.planning.acquire import commit_pins
from specdec_operator.planning.admission import admit
from specdec_operator.planning.refusal import Refused
from specdec_operator.planning.remarks import remarks
from specdec_operator.planning.steps import ContentFacts, acquire_content
from specdec_operator.reconcile.claims import ensure_store, single_node_claims
from specdec_operator.reconcile.halt import Halt
from specdec_operator.reconcile.refused_write import refusals_halt
from specdec_operator.resources.labels import REFRESH, RESTART
from specdec_operator.resources.serving import render_revision

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from specdec_operator.api.v1alpha1.model_artifact import ModelArtifact
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModel
    from specdec_operator.api.v1alpha1.status import ConditionType
    from specdec_operator.planning.artifact_request import ArtifactRequest
    from specdec_operator.planning.drivers import NodeLabels
    from specdec_operator.planning.plan import ServingPlan
    from specdec_operator.planning.resolution import Resolution
    from specdec_operator.planning.steps import ContentStep, EngineStep
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
        self._refresh = model.metadata.annotations.get(REFRESH, "")
        self.resolution: Resolution | None = None
        self.pins: tuple[Pin, ...] = tuple(model.status.pins)

    async def run(self) -> Prepared:
        """Go as far as possible.

        Raises:
            Halt: Something is refused, failed or still being made.
        """
        resolution = self._admit(await self._context.gpu_nodes.labels())
        await self._store(resolution)
        content = self._acquire(resolution)
        engines = self._pair(content, await self._cached(content))
        plan = await self._planned(engines)
        self.pins = (*self.pins, *derived_pins(plan.files))
        assembly_digest = await self._assembled(plan, engines.requests)
        return Prepared(plan=plan, revision=self._render(plan, assembly_digest=assembly_digest))

    def _admit(self, nodes: Sequence[NodeLabels]) -> Resolution:
        with _refused_plan_halts("Accepted"):
            resolution = admit(
                self._model,
                table=self._context.table,
                configuration=self._context.configuration,
                refresh=self._refresh,
                nodes=nodes,
            )
        self.resolution = resolution
        self.pins = resolution.pins
        self._conditions.set("Accepted", "True", "Accepted", accepted(self._model, resolution))
        return resolution

    async def _store(self, resolution: Resolution) -> None:
        claim = resolution.storage.claim if resolution.storage else None
        if claim:
            with refusals_halt("ModelsCached"):
                uid = await ensure_store(self._context.api, claim, namespace=self._model.metadata.namespace)
            self._usage.claims[claim.claim_name] = uid

    def _acquire(self, resolution: Resolution) -> ContentStep:
        content = acquire_content(
            self._model.spec,
            resolution,
            configuration=self._context.configuration,
            pins=self._model.status.pins,
            refresh=self._refresh,
        )
        self._keep_commits(content, commits={})
        return content

    async def _cached(self, content: ContentStep) -> ContentFacts:
        artifacts = await self._ready(content.requests, condition="ModelsCached")
        statuses = {role: artifact.status for role, artifact in artifacts.items()}
        facts = {role: status.facts for role, status in statuses.items() if status.facts}
        self._keep_commits(content, commits={role: status.commit for role, status in statuses.items()})
        held = ", ".join(f"{role} {fact.architecture}" for role, fact in facts.items())
        self._conditions.set("ModelsCached", "True", "Cached", held)
        return ContentFacts(
            models=facts, data_sets={role: status.data_set for role, status in statuses.items() if status.data_set}
        )

    def _keep_commits(self, content: ContentStep, *, commits: Mapping[str, str]) -> None:
        kept = commit_pins(content.requests, self._model.status.pins, commits=commits)
        self.pins = (*content.resolution.pins, *kept)

    def _pair(self, content: ContentStep, facts: ContentFacts) -> EngineStep:
        with _refused_plan_halts("PairVerified"):
            engines = content.pair(facts)
        self._conditions.set("PairVerified", "True", engines.verdict.reason, engines.verdict.message)
        return engines

    async def _planned(self, engines: EngineStep) -> ServingPlan:
        artifacts = await self._ready(engines.requests, condition="EnginesReady")
        single_node = await single_node_claims(
            self._context.api, engines.claims, namespace=self._model.metadata.namespace
        )
        digests = {role: artifact.status.digest for role, artifact in artifacts.items()}
        return engines.serving(digests=digests, single_node=single_node)

    async def _assembled(self, plan: ServingPlan, engines: Sequence[ArtifactRequest]) -> str:
        """The digest of the assembled model repository."""
        assembly = (await self._ready((plan.assembly,), condition="EnginesReady"))["assembly"]
        reason, built = ("Built", _told(engines)) if engines else ("NotNeeded", "this backend builds no engine")
        self._conditions.set("EnginesReady", "True", reason, f"{built}; repository assembled")
        return assembly.status.digest

    def _render(self, plan: ServingPlan, *, assembly_digest: str) -> Revision:
        return render_revision(
            self._model,
            plan,
            assembly_digest=assembly_digest,
            templates=self._context.templates,
            restart=self._model.metadata.annotations.get(RESTART, ""),
        )

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
            remedy = _retry_remedy(self._model.metadata.name) if ended else ""
            raise Halt(condition, status.reason, f"{said}{remedy}", terminal=bool(ended))
        return held


def derived_pins(files: ServingFiles) -> tuple[Pin, ...]:
    """What the backend needs other than the spec says."""
    return tuple(Pin(name=derived.name, value=derived.value, reason=derived.reason) for derived in files.derived)


def _retry_remedy(model: str) -> str:
    return (
        f". Then change the spec, or ask again: kubectl annotate specmodel/{model} "
        "specdec.dev/retry=1 --overwrite (each new value asks once)"
    )


def _told(engines: Sequence[ArtifactRequest]) -> str:
    made = sum(engine.spec.build is not None for engine in engines)
    parts = ((made, "built"), (len(engines) - made, "inspected"))
    return ", ".join(f"{count} engine(s) {done}" for count, done in parts if count)


@contextmanager
def _refused_plan_halts(condition: ConditionType) -> Iterator[None]:
    """Turn what planning refuses into the end of the way.

    Raises:
        Halt: With every refusal; only another spec can help.
    """
    try:
        yield
    except Refused as refused:
        message = "; ".join(str(refusal) for refusal in refused.refusals)
        raise Halt(condition, refused.refusals[0].reason, message, terminal=True) from refused


def accepted(model: SpeculativeModel, resolution: Resolution) -> str:
    """What the condition says of an accepted spec: what serves it, and what to know of it."""
    simulated = " (a simulator: no GPU is used)" if resolution.release.simulator else ""
    served = f"{resolution.backend} of release {resolution.release.name}{simulated}"
    return "; ".join([served, *map(str, remarks(model.spec))])

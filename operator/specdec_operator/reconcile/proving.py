"""The operator's own proof: a real request through the Service, when there is something new to prove."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specdec_operator.api.v1alpha1.status import ProofStatus
from specdec_operator.cluster.resources import ENDPOINT_SLICES
from specdec_operator.planning.keys import content_key
from specdec_operator.reconcile.context import timestamp
from specdec_operator.reconcile.endpoints import SERVICE_NAME, stray
from specdec_operator.reconcile.halt import Halt
from specdec_operator.reconcile.queue import Key
from specdec_operator.resources.labels import REVISION, serving_name
from specdec_operator.runtimes.serving import HTTP_PORT
from specdec_operator.triton.proof import Endpoint, Outcome, ProofRequest
from specdec_operator.triton.tensors import Tensor

if TYPE_CHECKING:
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModel
    from specdec_operator.cluster.api import JsonObject
    from specdec_operator.reconcile.background_proofs import Standing
    from specdec_operator.reconcile.conditions import Conditions
    from specdec_operator.reconcile.context import Context
    from specdec_operator.reconcile.endpoints import Stray
    from specdec_operator.reconcile.observation import Serving
    from specdec_operator.runtimes.serving import RequestTensor, ServingFiles

_FOREIGN_SECONDS = 60.0
_PROGRAMMING_SECONDS = 15.0
"""How long a Service may take to answer after its pods are ready: proxies and policies are told of them one by one."""


class Proving:
    """One model's proof, during one reconcile.

    Attributes:
        proof: What is proven; None if nothing is.
        requeue_after: When to try again; None if there is no need.
        is_pending: Whether the proof is still to come.
    """

    def __init__(self, context: Context, model: SpeculativeModel, conditions: Conditions) -> None:
        self._context = context
        self._model = model
        self._conditions = conditions
        self.proof: ProofStatus | None = None
        self.requeue_after: float | None = None
        self.is_pending = False

    async def run(self, serving: Serving, files: ServingFiles) -> None:
        """Prove that the Service answers from this revision; a proof of the same pods is kept.

        Raises:
            Halt: Somebody leads the Service elsewhere.
        """
        found = await self._stray(serving)
        if found and found.foreign:
            raise Halt("Served", "ForeignEndpoints", found.message, terminal=True, requeue_after=_FOREIGN_SECONDS)
        if found:
            self._conditions.set("Served", "False", "EndpointsUpdating", found.message)
            self.requeue_after = 5.0
            return
        wanted = ProofStatus(revision=serving.revision, pods=pods_key(serving))
        before = next((c for c in self._model.status.conditions if c.type == "Served"), None)
        kept = self._model.status.proof
        if _same(kept, wanted) and before is not None and before.status == "True":
            self.proof = kept
            self._conditions.set("Served", "True", before.reason, before.message)
            return
        await self._prove(serving, files, wanted)

    async def _prove(self, serving: Serving, files: ServingFiles, wanted: ProofStatus) -> None:
        key = Key("SpeculativeModel", self._model.metadata.namespace, self._model.metadata.name)
        standing = await self._context.proofs.standing(
            key,
            about=f"{wanted.revision} {wanted.pods}",
            endpoint=Endpoint(host=serving.service["spec"].get("clusterIP", ""), port=HTTP_PORT),
            request=_request(serving, files),
        )
        self.requeue_after = standing.again_after
        self._judge(standing, files, wanted)

    def _judge(self, standing: Standing, files: ServingFiles, wanted: ProofStatus) -> None:
        proof = standing.proof
        if proof is None:
            self._wait(wanted, "the Service is asked for an answer; a first one can take a minute")
        elif proof.outcome is Outcome.SERVED:
            counts = {"drafted": proof.drafted, "accepted": proof.accepted} if files.counted else {}
            self.proof = wanted.model_copy(update=counts)
            self._conditions.set("Served", "True", "Answered", f"the Service answered: {proof.text.strip()[:200]!r}")
        elif proof.outcome is not Outcome.UNREACHABLE:
            self.proof = wanted.model_copy(update={"wrong_since": self._wrong_since(wanted)})
            self._conditions.set("Served", "False", proof.outcome.value, proof.message)
        elif standing.failing_seconds < _PROGRAMMING_SECONDS:
            self._wait(wanted, "the Service does not answer yet: nodes are still learning of its endpoints")
        else:
            message = f"the operator can't reach the Service from where it runs: {proof.message}"
            self._conditions.set("Served", "Unknown", "ProofUnreachable", message)

    def _wait(self, wanted: ProofStatus, message: str) -> None:
        kept = self._model.status.proof
        self.proof = kept if _same(kept, wanted) else None
        self.is_pending = True
        self._conditions.set("Served", "Unknown", "Proving", message)

    def _wrong_since(self, wanted: ProofStatus) -> str:
        """Since when proofs of these pods have been wrong: time in which none could be made does not count."""
        kept = self._model.status.proof
        return (kept.wrong_since if kept and _same(kept, wanted) else None) or timestamp(self._context.now())

    async def _stray(self, serving: Serving) -> Stray | None:
        metadata = self._model.metadata
        slices = await self._context.api.list(
            ENDPOINT_SLICES,
            namespace=metadata.namespace,
            label_selector=f"{SERVICE_NAME}={serving_name(metadata.name)}",
        )
        return stray(slices, serving)


def _request(serving: Serving, files: ServingFiles) -> ProofRequest:
    return ProofRequest(
        model=files.endpoint_model,
        tensors=_tensors(files.tensors),
        output=files.output,
        revision=serving.revision,
        counted=tuple(_tensors(tensors) for tensors in files.counted),
        decoupled=files.decoupled,
    )


def _same(kept: ProofStatus | None, wanted: ProofStatus) -> bool:
    return kept is not None and (kept.revision, kept.pods) == (wanted.revision, wanted.pods)


def _tensors(tensors: tuple[RequestTensor, ...]) -> tuple[Tensor, ...]:
    return tuple(Tensor(name=t.name, datatype=t.datatype, shape=t.shape, values=t.values) for t in tensors)


def pods_key(serving: Serving) -> str:
    """What a proof went through: the Service, and the revision's pods that answer; pods that leave don't count."""
    uids = sorted(pod["metadata"]["uid"] for pod in serving.pods if _answers(pod, serving.revision))
    return content_key({"service": serving.service["metadata"]["uid"], "pods": uids})[:32]


def _answers(pod: JsonObject, revision: str) -> bool:
    metadata = pod["metadata"]
    conditions = pod.get("status", {}).get("conditions") or []
    ready = any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
    return ready and "deletionTimestamp" not in metadata and metadata.get("labels", {}).get(REVISION) == revision

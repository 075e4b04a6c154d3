from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from specdec_operator.api.v1alpha1.speculative_model import parse
from specdec_operator.api.v1alpha1.status import ProofStatus
from specdec_operator.reconcile.background_proofs import Standing
from specdec_operator.reconcile.conditions import Conditions
from specdec_operator.reconcile.endpoints import CONTROLLER, MANAGED_BY
from specdec_operator.reconcile.halt import Halt
from specdec_operator.reconcile.observation import Serving
from specdec_operator.reconcile.proving import Proving, pods_key
from specdec_operator.triton.proof import Outcome, Proof

if TYPE_CHECKING:
    from specdec_operator.reconcile.context import Context
    from specdec_operator.runtimes.serving import ServingFiles

NOW = "2026-01-01T12:00:00Z"
FILES = cast(
    "ServingFiles",
    SimpleNamespace(endpoint_model="m", tensors=(), output="text_output", counted=(), decoupled=False),
)


def pod(uid: str, *, ready: str = "True", revision: str = "m-1", **metadata: Any) -> dict[str, Any]:
    labels = {"specdec.dev/revision": revision}
    conditions = [{"type": "Ready", "status": ready}]
    status = {"conditions": conditions, "podIP": f"10.0.0.{ord(uid)}", "podIPs": [{"ip": f"10.0.0.{ord(uid)}"}]}
    return {"metadata": {"uid": uid, "name": f"pod-{uid}", "labels": labels, **metadata}, "status": status}


def serving_side(*pods: dict[str, Any], service: str = "s") -> Serving:
    return Serving(
        revision="m-1",
        wanted=1,
        replicas=1,
        ready=1,
        updated_ready=True,
        pods=pods,
        service={"metadata": {"uid": service}, "spec": {"clusterIP": "10.1.0.1"}},
        trouble=None,
        deadline_exceeded=False,
    )


def key(*pods: dict[str, Any], service: str = "s") -> str:
    return pods_key(serving_side(*pods, service=service))


def endpoint_slice(*uids: str) -> dict[str, Any]:
    endpoints = [
        {
            "addresses": [f"10.0.0.{ord(uid)}"],
            "conditions": {"ready": True},
            "targetRef": {"kind": "Pod", "name": f"pod-{uid}", "uid": uid},
        }
        for uid in uids
    ]
    labels = {MANAGED_BY: CONTROLLER}
    return {
        "metadata": {"name": "m-serving-x", "namespace": "ns", "labels": labels},
        "addressType": "IPv4",
        "endpoints": endpoints,
    }


class Surroundings:
    """What a proof is made in.

    Attributes:
        standing: how the proof stands.
        slices: what the Service leads to.
        served: the condition that was found: status and reason.
    """

    def __init__(self, standing: Standing, *, slices: list[dict[str, Any]] | None = None) -> None:
        self._standing = standing
        self._slices = [endpoint_slice("a")] if slices is None else slices
        self.asked = 0

    async def list(self, *_: Any, **__: Any) -> list[dict[str, Any]]:
        return self._slices

    async def standing(self, *_: Any, **__: Any) -> Standing:
        self.asked += 1
        return self._standing

    async def run(self, *, kept: ProofStatus | None = None, before: str = "Unknown") -> Proving:
        status = {"conditions": [{"type": "Served", "status": before, "reason": "Before", "message": "said before"}]}
        if kept:
            status["proof"] = kept.model_dump(by_alias=True, exclude_none=True)  # type: ignore[assignment]
        model = parse(
            {
                "apiVersion": "specdec.dev/v1alpha1",
                "kind": "SpeculativeModel",
                "metadata": {"name": "m", "namespace": "ns", "uid": "u", "generation": 1},
                "spec": {
                    "target": {"source": {"huggingFace": {"repository": "a/b"}}},
                    "speculation": {"method": "NGram"},
                },
                "status": status,
            }
        )
        self.conditions = Conditions(model.status.conditions, generation=1, now=NOW)
        now = datetime.fromisoformat(NOW).astimezone(UTC)
        context = cast("Context", SimpleNamespace(api=self, proofs=self, now=lambda: now))
        proving = Proving(context, model, self.conditions)
        await proving.run(serving_side(pod("a")), FILES)
        return proving

    @property
    def served(self) -> tuple[str, str]:
        found = self.conditions.get("Served")
        assert found
        return found.status, found.reason

    @property
    def message(self) -> str:
        found = self.conditions.get("Served")
        assert found
        return found.message


SERVED = Proof(outcome=Outcome.SERVED, message="answered", text=" Paris.")
UNREACHABLE = Proof(outcome=Outcome.UNREACHABLE, message="refused")
WRONG = Proof(outcome=Outcome.WRONG_ANSWER, message="no text")


def of_these_pods(**more: Any) -> ProofStatus:
    return ProofStatus(revision="m-1", pods=key(pod("a")), **more)


def test_another_pod_is_proven_again() -> None:
    assert key(pod("a")) != key(pod("b"))


def test_a_service_made_again_is_proven_again() -> None:
    assert key(pod("a")) != key(pod("a"), service="t")


@pytest.mark.parametrize(
    "other",
    [pod("b", deletionTimestamp="2026-01-01T00:00:00Z"), pod("b", ready="False"), pod("b", revision="m-0")],
    ids=["leaving", "not ready", "of another revision"],
)
def test_a_pod_that_does_not_answer_changes_nothing(other: dict[str, Any]) -> None:
    assert key(pod("a"), other) == key(pod("a"))


async def test_an_answer_proves_the_revision() -> None:
    scene = Surroundings(Standing(proof=SERVED))
    proving = await scene.run()

    assert (scene.served, proving.proof) == (("True", "Answered"), of_these_pods())


async def test_a_proof_of_the_same_pods_is_kept() -> None:
    scene = Surroundings(Standing(proof=WRONG))
    proving = await scene.run(kept=of_these_pods(), before="True")

    assert (scene.served, proving.proof, scene.asked) == (("True", "Before"), of_these_pods(), 0)


async def test_a_proof_under_way_is_told_and_proves_nothing_yet() -> None:
    scene = Surroundings(Standing())
    proving = await scene.run()

    assert (scene.served, proving.is_pending, proving.proof) == (("Unknown", "Proving"), True, None)


@pytest.mark.parametrize(("failing", "reason"), [(0.0, "Proving"), (14.0, "Proving"), (16.0, "ProofUnreachable")])
async def test_a_service_counts_as_unreachable_only_when_its_endpoints_must_be_known(
    failing: float, reason: str
) -> None:
    scene = Surroundings(Standing(proof=UNREACHABLE, failing_seconds=failing, again_after=2.0))
    proving = await scene.run()

    assert (scene.served, proving.requeue_after) == (("Unknown", reason), 2.0)


@pytest.mark.parametrize(
    ("kept", "since"),
    [
        (None, NOW),
        (of_these_pods(wrong_since="2026-01-01T11:00:00Z"), "2026-01-01T11:00:00Z"),
        (ProofStatus(revision="m-1", pods="others", wrong_since="2026-01-01T11:00:00Z"), NOW),
    ],
    ids=["the first", "another", "of other pods"],
)
async def test_a_wrong_proof_is_dated_from_the_first_wrong_one_of_the_same_pods(
    kept: ProofStatus | None, since: str
) -> None:
    scene = Surroundings(Standing(proof=WRONG, again_after=2.0))
    proving = await scene.run(kept=kept, before="False")

    assert (scene.served, proving.proof) == (("False", "WrongAnswer"), of_these_pods(wrong_since=since))


async def test_a_wrong_proof_keeps_its_date_while_the_next_is_under_way() -> None:
    wrong = of_these_pods(wrong_since="2026-01-01T11:00:00Z")

    assert (await Surroundings(Standing()).run(kept=wrong)).proof == wrong


@pytest.mark.parametrize(
    ("standing", "slices"),
    [(Standing(proof=UNREACHABLE, failing_seconds=60), None), (Standing(proof=WRONG), [])],
    ids=["unreachable", "without endpoints"],
)
async def test_time_in_which_no_proof_can_be_made_does_not_count(
    standing: Standing, slices: list[dict[str, Any]] | None
) -> None:
    wrong = of_these_pods(wrong_since="2026-01-01T11:00:00Z")

    assert (await Surroundings(standing, slices=slices).run(kept=wrong)).proof is None


@pytest.mark.parametrize("uids", ["b", "a", ""], ids=["another address", "the pod's own address", "nobody"])
@pytest.mark.parametrize("keeper", [None, "mesh.example.com"])
async def test_a_slice_that_kubernetes_does_not_keep_ends_the_service_s_truth(uids: str, keeper: str | None) -> None:
    foreign = endpoint_slice(*uids)
    foreign["metadata"] |= {"name": "stray", "labels": {MANAGED_BY: keeper} if keeper else {}}
    scene = Surroundings(Standing(proof=SERVED), slices=[endpoint_slice("a"), foreign])
    if not uids:
        await scene.run()
        assert scene.served == ("True", "Answered")
        return
    with pytest.raises(Halt, match="kubectl delete endpointslice stray -n ns") as halted:
        await scene.run(kept=of_these_pods(), before="True")
    assert (halted.value.reason, halted.value.terminal) == ("ForeignEndpoints", True)

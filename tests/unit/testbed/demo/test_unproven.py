from __future__ import annotations

import json

from specdec_operator.pod.termination import Succeeded, decode
from specdec_operator.triton.proof import Endpoint, Outcome, ProofRequest
from testbed.demo.unproven import NobodyAnswers, facts_of_models, is_prepared


def test_played_fetches_tell_the_facts_of_the_hubs_models() -> None:
    (ending,) = facts_of_models()["specdec-testbed/tiny-llama"]
    outcome = decode(ending.message)
    assert isinstance(outcome, Succeeded)
    assert outcome.result["facts"]["vocabularySize"] == 512, json.dumps(outcome.result)


async def test_the_proof_of_played_pods_is_never_more_than_unknown() -> None:
    request = ProofRequest(model="m", tensors=(), output="text_output")
    proof = await NobodyAnswers().prove(Endpoint("127.0.0.1", 8000), request)
    assert proof.outcome is Outcome.UNREACHABLE


def test_a_model_is_prepared_when_only_its_proof_is_missing() -> None:
    conditions = [{"type": "Served", "status": "Unknown", "reason": "ProofUnreachable"}]
    model = {"metadata": {"generation": 1}, "status": {"observedGeneration": 1, "conditions": conditions}}
    assert is_prepared(model)
    assert not is_prepared({**model, "metadata": {"generation": 2}})

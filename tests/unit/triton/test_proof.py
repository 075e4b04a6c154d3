"""The operator's own proof."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
import pytest_asyncio

from specdec_operator.triton.proof import Endpoint, Outcome, Proof, ProofRequest, Prover, TritonProver
from specdec_operator.triton.tensors import Tensor
from tests.unit.triton import kserve
from tests.unit.triton.kserve import KServe, Output

server = pytest_asyncio.fixture(kserve.running)

REQUEST = ProofRequest(
    model="m",
    tensors=(
        Tensor(name="text_input", datatype="BYTES", shape=(1, 1), values=("Hé",)),
        Tensor(name="max_tokens", datatype="INT32", shape=(1, 1), values=(4,)),
        Tensor(name="stream", datatype="BOOL", shape=(1, 1), values=(False,)),
    ),
    output="text_output",
    revision="r1",
)
DECOUPLED = replace(REQUEST, decoupled=True)


async def prove(endpoint: Endpoint, prover: Prover | None = None) -> Proof:
    return await (prover or TritonProver()).prove(endpoint, REQUEST)


async def test_a_real_answer_is_a_proof(server: KServe) -> None:
    proof = await prove(server.endpoint)

    assert (proof.outcome, proof.text) == (Outcome.SERVED, "Paris")


async def test_the_request_carries_every_tensor_as_it_was_given(server: KServe) -> None:
    await prove(server.endpoint)

    sent = [(tensor["name"], tensor["datatype"], tensor["shape"]) for tensor in server.requests[0]["inputs"]]
    assert sent == [("text_input", "BYTES", [1, 1]), ("max_tokens", "INT32", [1, 1]), ("stream", "BOOL", [1, 1])]
    assert server.binary_parts == [b"\x03\0\0\0H\xc3\xa9" + b"\x04\0\0\0" + b"\0"]


async def test_counts_are_passed_on(server: KServe) -> None:
    server.outputs += [Output("total_draft_tokens", "INT32", [12]), Output("total_accepted_draft_tokens", "INT32", [7])]
    proof = await prove(server.endpoint)

    assert (proof.drafted, proof.accepted) == (12, 7)


async def test_counts_of_all_counted_requests_are_added_up(server: KServe) -> None:
    server.outputs += [Output("total_draft_tokens", "INT32", [12]), Output("total_accepted_draft_tokens", "INT32", [7])]
    more = replace(REQUEST, counted=(REQUEST.tensors, REQUEST.tensors))
    proof = await TritonProver().prove(server.endpoint, more)

    assert (proof.drafted, proof.accepted, len(server.requests)) == (36, 21, 3)


async def test_counts_stay_unknown_where_no_answer_has_them(server: KServe) -> None:
    more = replace(REQUEST, counted=(REQUEST.tensors,))
    proof = await TritonProver().prove(server.endpoint, more)

    assert (proof.drafted, proof.accepted) == (None, None)


async def test_what_was_answered_stays_proven_where_it_can_not_be_counted(server: KServe) -> None:
    server.outputs += [Output("total_draft_tokens", "INT32", [12]), Output("total_accepted_draft_tokens", "INT32", [7])]
    server.healthy_answers = 1
    proof = await TritonProver().prove(server.endpoint, replace(REQUEST, counted=(REQUEST.tensors,)))

    assert (proof.outcome, proof.drafted, proof.accepted) == (Outcome.SERVED, None, None)


async def test_counts_may_be_text(server: KServe) -> None:
    server.outputs += [
        Output("total_draft_tokens", "BYTES", ["12.0"]),
        Output("total_accepted_draft_tokens", "BYTES", ["0.0"], binary=False),
    ]
    proof = await prove(server.endpoint)

    assert (proof.drafted, proof.accepted) == (12, 0)


async def test_counts_that_are_not_reported_are_unknown(server: KServe) -> None:
    proof = await prove(server.endpoint)

    assert (proof.drafted, proof.accepted) == (None, None)


async def test_counts_that_say_nothing_are_unknown(server: KServe) -> None:
    server.outputs += [Output("total_draft_tokens", "BYTES", ["None"])]

    assert (await prove(server.endpoint)).drafted is None


async def test_a_server_that_is_not_ready_is_not_asked(server: KServe) -> None:
    server.server_ready = False

    assert (await prove(server.endpoint)).outcome == Outcome.NOT_READY
    assert server.requests == []


async def test_a_model_that_is_not_ready_is_not_asked(server: KServe) -> None:
    server.model_ready = False

    assert (await prove(server.endpoint)).outcome == Outcome.NOT_READY
    assert server.requests == []


@pytest.mark.parametrize("revision", ["r0", None])
async def test_an_answer_of_another_revision_proves_nothing(server: KServe, revision: str | None) -> None:
    server.revision = revision
    proof = await prove(server.endpoint)

    assert proof.outcome == Outcome.STALE_REVISION
    assert server.requests == []


async def test_nobody_there_is_unreachable() -> None:
    proof = await prove(Endpoint("127.0.0.1", 9))

    assert proof.outcome == Outcome.UNREACHABLE
    assert "127.0.0.1:9" in proof.message


async def test_a_name_that_does_not_resolve_is_unreachable() -> None:
    assert (await prove(Endpoint("nowhere.invalid", 8000))).outcome == Outcome.UNREACHABLE


async def test_a_server_that_never_says_whether_it_is_ready_is_unreachable(server: KServe) -> None:
    server.ready_delay_seconds = 1.0

    assert (await prove(server.endpoint, TritonProver(connect_seconds=0.1))).outcome == Outcome.UNREACHABLE


async def test_an_answer_that_takes_too_long_is_none(server: KServe) -> None:
    server.answer_delay_seconds = 1.0

    assert (await prove(server.endpoint, TritonProver(whole_seconds=0.3))).outcome == Outcome.WRONG_ANSWER


@pytest.mark.parametrize(("status", "outcome"), [(500, Outcome.WRONG_ANSWER), (503, Outcome.NOT_READY)])
async def test_a_refused_request_is_shown(server: KServe, status: int, outcome: Outcome) -> None:
    server.error = (status, "the engine died")
    proof = await prove(server.endpoint)

    assert (proof.outcome, "the engine died" in proof.message) == (outcome, True)


async def test_a_model_that_answers_in_pieces_is_asked_to_generate(server: KServe) -> None:
    server.outputs += [Output("total_draft_tokens", "INT32", [12]), Output("total_accepted_draft_tokens", "INT32", [7])]
    proof = await TritonProver().prove(server.endpoint, replace(DECOUPLED, counted=(REQUEST.tensors,)))

    assert (proof.outcome, proof.text, proof.drafted, proof.accepted) == (Outcome.SERVED, "Paris", 24, 14)
    assert server.requests == [{"text_input": "Hé", "max_tokens": 4, "stream": False}] * 2


async def test_several_texts_of_one_answer_are_read_by_their_first(server: KServe) -> None:
    server.outputs = [Output("text_output", "BYTES", ["Paris", "Rome"])]

    assert (await TritonProver().prove(server.endpoint, DECOUPLED)).text == "Paris"


@pytest.mark.parametrize(("status", "outcome"), [(500, Outcome.WRONG_ANSWER), (503, Outcome.NOT_READY)])
async def test_a_refused_generation_is_shown(server: KServe, status: int, outcome: Outcome) -> None:
    server.error = (status, "the engine died")
    proof = await TritonProver().prove(server.endpoint, DECOUPLED)

    assert (proof.outcome, "the engine died" in proof.message) == (outcome, True)


@pytest.mark.parametrize("generated", [["Paris"], {"text_output": ""}, {"other": "Paris"}])
async def test_a_generation_without_text_is_wrong(server: KServe, generated: object) -> None:
    server.generated = generated

    assert (await TritonProver().prove(server.endpoint, DECOUPLED)).outcome == Outcome.WRONG_ANSWER


@pytest.mark.parametrize(
    "outputs",
    [[], [Output("text_output", "BYTES", [""])], [Output("text_output", "BYTES", [])], [Output("other", "INT32", [1])]],
    ids=["none", "empty text", "no element", "another output"],
)
async def test_an_answer_without_text_is_wrong(server: KServe, outputs: list[Output]) -> None:
    server.outputs = outputs

    assert (await prove(server.endpoint)).outcome == Outcome.WRONG_ANSWER


async def test_something_else_than_triton_is_a_wrong_answer() -> None:
    async def hello(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(hello, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]

        assert (await prove(Endpoint("127.0.0.1", port))).outcome == Outcome.WRONG_ANSWER


def test_an_ipv6_address_is_bracketed() -> None:
    assert Endpoint("fd00::1", 8000).address() == "[fd00::1]:8000"

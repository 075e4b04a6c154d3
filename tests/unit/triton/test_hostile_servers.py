"""A proof asks servers that tenants run: whatever they answer, the operator stays small, quick and silent about it."""

from __future__ import annotations

import gzip
import json
import struct
from dataclasses import replace

import pytest

from specdec_operator.triton.proof import Endpoint, Outcome, Proof, ProofRequest, TritonProver
from specdec_operator.triton.tensors import Tensor
from tests.unit.triton.rough import CONFIG, OK, READY, body, rough

REQUEST = ProofRequest(
    model="m",
    tensors=(Tensor(name="text_input", datatype="BYTES", shape=(1, 1), values=("Hi",)),),
    output="text_output",
    revision="r1",
)
INFER, GENERATE = "/v2/models/m/infer", "/v2/models/m/generate"
ASKED = (INFER, GENERATE)
KEPT_SMALL = 8 << 20
"""Bytes that may leave a server before its client has gone: the bound on an answer, and what the sockets hold."""


async def prove(endpoint: Endpoint, path: str = INFER, *, seconds: float = 5.0) -> Proof:
    """A proof by the way that this path is of."""
    prover = TritonProver(connect_seconds=seconds, whole_seconds=seconds)
    return await prover.prove(endpoint, replace(REQUEST, decoupled=path == GENERATE))


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
ENDLESS = {
    "without a length": (b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 65536),
    "in chunks": (CHUNKED, b"ffff\r\n" + b"x" * 0xFFFF + b"\r\n"),
    "in chunks of one byte": (CHUNKED, b"1\r\nx\r\n" * 10_000),
    "of headers": (b"HTTP/1.1 200 OK\r\n", b"X-Header: x\r\n" * 5000),
    "of one header": (b"HTTP/1.1 200 OK\r\nX-Header: ", b"x" * 65536),
    "of chunk extensions": (CHUNKED + b"1;", b"x" * 65536),
}


@pytest.mark.parametrize("path", [*READY, *CONFIG, *ASKED])
@pytest.mark.parametrize("kind", ENDLESS)
async def test_an_endless_answer_ends_the_proof_before_it_fills_the_memory(path: str, kind: str) -> None:
    start, more = ENDLESS[kind]
    async with rough({**READY, **CONFIG, path: start}, {path: more}) as server:
        proof = await prove(server.endpoint, path)

        assert proof.outcome is Outcome.WRONG_ANSWER
        assert server.sent < KEPT_SMALL


async def test_an_answer_in_drips_ends_with_the_proofs_time() -> None:
    async with rough({**READY, "/v2/models/m/config": CHUNKED + b"1\r\n{\r\n"}) as server:
        proof = await prove(server.endpoint, seconds=0.3)

    assert proof.outcome is Outcome.WRONG_ANSWER


@pytest.mark.parametrize("path", ASKED)
@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd"])
@pytest.mark.parametrize("content", [gzip.compress(bytes(50 << 20)), b"not compressed"], ids=["bomb", "broken"])
async def test_a_compressed_answer_is_not_unpacked(path: str, encoding: str, content: bytes) -> None:
    packed = body(content, headers=f"Content-Encoding: {encoding}\r\n")
    async with rough({**READY, **CONFIG, path: packed}) as server:
        proof = await prove(server.endpoint, path)

    assert (proof.outcome, "compressed" in proof.message) == (Outcome.WRONG_ANSWER, True)


@pytest.mark.parametrize("path", [*READY, *CONFIG, *ASKED])
@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"])
async def test_a_redirect_is_not_followed(path: str, status: str) -> None:
    async with rough({"": OK}) as elsewhere:
        target = f"Location: http://{elsewhere.endpoint.address()}/secret\r\n"
        async with rough({**READY, **CONFIG, path: body(b"", status=status, headers=target)}) as server:
            proof = await prove(server.endpoint, path)

        assert (proof.outcome is Outcome.SERVED, elsewhere.asked) == (False, [])


def binary(outputs: object, data: bytes = b"") -> bytes:
    """An answer of `infer`, its head and its binary part."""
    head = json.dumps({"outputs": outputs}).encode()
    return body(head + data, headers=f"Inference-Header-Content-Length: {len(head)}\r\n")


def text(size: object, **more: object) -> dict[str, object]:
    """How `infer` describes a binary text of so many bytes."""
    return {
        "name": "text_output",
        "datatype": "BYTES",
        "shape": [1],
        "parameters": {"binary_data_size": size},
        **more,
    }


DECEITFUL = {
    "a length beyond the answer": binary([text(8)], struct.pack("<I", 0xFFFFFFFF) + b"abcd"),
    "a negative size": binary([text(-4)], b"abcdefgh"),
    "a size that is text": binary([text("8")], b"abcdefgh"),
    "a shape that does not fit": binary([text(8, shape=[10**12])], struct.pack("<I", 4) + b"abcd"),
    "a shape that is text": binary([text(8, shape="x")], struct.pack("<I", 4) + b"abcd"),
    "an unknown datatype": binary([text(8, datatype="COMPLEX")], b"abcdefgh"),
    "outputs that are no list": binary({"text_output": 1}),
    "deep nesting": body(b"[" * 500_000),
    "closed deep nesting": body(b"[" * 250_000 + b"]" * 250_000),
    "no text": body(b"\xff\xfe\x00"),
    "a head length that is no number": body(b"{}", headers="Inference-Header-Content-Length: many\r\n"),
    "a negative head length": body(b"{}", headers="Inference-Header-Content-Length: -1\r\n"),
    "a body cut short": b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\nConnection: close\r\n\r\n{",
    "a switch of protocols": b"HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
}


@pytest.mark.parametrize("path", ASKED)
@pytest.mark.parametrize("kind", DECEITFUL)
async def test_a_deceitful_answer_is_a_wrong_answer(path: str, kind: str) -> None:
    async with rough({**READY, **CONFIG, path: DECEITFUL[kind]}) as server:
        proof = await prove(server.endpoint, path, seconds=1.0)

    assert proof.outcome is Outcome.WRONG_ANSWER


SECRET = "hunter2"
NOT_TRITONS = {
    "a page": body(f"<html>{SECRET}</html>".encode(), status="403 Forbidden"),
    "a page in place of an answer": body(f"<html>{SECRET}</html>".encode()),
    "JSON of another kind": body(json.dumps({"error": {"token": SECRET}}).encode(), status="401 Unauthorized"),
    "JSON with more than an error": body(json.dumps({"error": SECRET, "code": 1}).encode(), status="401 No"),
    "another JSON object": body(json.dumps({"token": SECRET}).encode()),
    "JSON text": body(json.dumps(SECRET).encode()),
    "another protocol": f"SSH-2.0-{SECRET}\r\n".encode(),
    "a broken header": f"HTTP/1.1 200 OK\r\n{SECRET}\r\n\r\n".encode(),
    "a reason": f"HTTP/1.1 500 {SECRET}\r\nContent-Length: 0\r\n\r\n".encode(),
    "a length": f"HTTP/1.1 200 OK\r\nContent-Length: {SECRET}\r\n\r\n".encode(),
    "a place": body(b"", status="302 Found", headers=f"Location: http://{SECRET}/\r\n"),
}


@pytest.mark.parametrize("path", [*READY, *CONFIG, *ASKED])
@pytest.mark.parametrize("kind", NOT_TRITONS)
async def test_nothing_is_quoted_from_what_is_not_tritons(path: str, kind: str) -> None:
    async with rough({**READY, **CONFIG, path: NOT_TRITONS[kind]}) as server:
        proof = await prove(server.endpoint, path, seconds=1.0)

    assert SECRET not in proof.message
    assert SECRET not in proof.text


async def test_an_error_is_not_quoted_before_the_server_has_shown_the_models_configuration() -> None:
    refused = body(json.dumps({"error": SECRET}).encode(), status="400 Bad Request")
    async with rough({**READY, "/v2/models/m/config": refused}) as server:
        proof = await prove(server.endpoint)

    assert (proof.outcome, SECRET in proof.message) == (Outcome.WRONG_ANSWER, False)


@pytest.mark.parametrize("revision", [f"{SECRET} and more", SECRET * 40, {"token": SECRET}, [SECRET]])
async def test_a_revision_that_no_operator_names_is_not_quoted(revision: object) -> None:
    config = json.dumps({"parameters": {"specdec_revision": {"string_value": revision}}}).encode()
    async with rough({**READY, "/v2/models/m/config": body(config)}) as server:
        proof = await prove(server.endpoint)

    assert (proof.outcome, SECRET in proof.message) == (Outcome.STALE_REVISION, False)


@pytest.mark.parametrize("path", ASKED)
async def test_a_quoted_error_is_short_and_printable(path: str) -> None:
    refused = body(json.dumps({"error": "out\n\x1b[31mof\ud800 memory " + "x" * 10_000}).encode(), status="500 Error")
    async with rough({**READY, **CONFIG, path: refused}) as server:
        message = (await prove(server.endpoint, path)).message

    assert "memory xxx" in message
    assert len(message) < 500
    assert message.isprintable()

"""A small server that speaks KServe's protocol v2 with Triton's binary extension."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from aiohttp import web
from tritonclient.utils import serialize_byte_tensor

from specdec_operator.triton.proof import Endpoint

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@dataclass(frozen=True)
class Output:
    """An output tensor as a server sends it: binary, or as JSON."""

    name: str
    datatype: str
    values: list[Any]
    binary: bool = True

    def describe(self) -> tuple[dict[str, Any], bytes]:
        """Its JSON part and its binary part."""
        head: dict[str, Any] = {"name": self.name, "datatype": self.datatype, "shape": [len(self.values)]}
        if not self.binary:
            return {**head, "data": self.values}, b""
        if self.datatype == "BYTES":
            serialized = serialize_byte_tensor(np.array([value.encode() for value in self.values], dtype=np.object_))
            data = bytes(serialized.item())
        else:
            data = np.array(self.values, dtype={"INT32": np.int32, "FP32": np.float32}[self.datatype]).tobytes()
        return {**head, "parameters": {"binary_data_size": len(data)}}, data


@dataclass
class KServe:
    """What the server says; tests change it."""

    server_ready: bool = True
    model_ready: bool = True
    revision: str | None = "r1"
    outputs: list[Output] = field(default_factory=lambda: [Output("text_output", "BYTES", ["Paris"])])
    error: tuple[int, str] | None = None
    healthy_answers: int | None = None
    generated: Any = None
    ready_delay_seconds: float = 0.0
    answer_delay_seconds: float = 0.0
    requests: list[dict[str, Any]] = field(default_factory=list)
    binary_parts: list[bytes] = field(default_factory=list)
    endpoint: Endpoint = field(default_factory=lambda: Endpoint("127.0.0.1", 0))

    def application(self) -> web.Application:
        """The routes."""
        application = web.Application()
        application.add_routes(
            [
                web.get("/v2/health/ready", self._server_ready),
                web.get("/v2/models/m/ready", self._model_ready),
                web.get("/v2/models/m/config", self._config),
                web.post("/v2/models/m/infer", self._infer),
                web.post("/v2/models/m/generate", self._generate),
            ]
        )
        return application

    async def _server_ready(self, _request: web.Request) -> web.Response:
        await asyncio.sleep(self.ready_delay_seconds)
        return web.Response(status=200 if self.server_ready else 400)

    async def _model_ready(self, _request: web.Request) -> web.Response:
        return web.Response(status=200 if self.model_ready else 400)

    async def _config(self, _request: web.Request) -> web.Response:
        parameters = {} if self.revision is None else {"specdec_revision": {"string_value": self.revision}}
        return web.json_response({"name": "m", "parameters": parameters})

    async def _infer(self, request: web.Request) -> web.Response:
        body = await request.read()
        size = int(request.headers["Inference-Header-Content-Length"])
        self.requests.append(json.loads(body[:size]))
        self.binary_parts.append(body[size:])
        await asyncio.sleep(self.answer_delay_seconds)
        if self.healthy_answers is not None and len(self.requests) > self.healthy_answers:
            return web.json_response({"error": "busy"}, status=503)
        if self.error is not None:
            return web.json_response({"error": self.error[1]}, status=self.error[0])
        described = [output.describe() for output in self.outputs]
        head = json.dumps(
            {"model_name": "m", "model_version": "1", "outputs": [part for part, _ in described]}
        ).encode()
        return web.Response(
            body=head + b"".join(data for _, data in described),
            headers={"Inference-Header-Content-Length": str(len(head)), "Content-Type": "application/octet-stream"},
        )

    async def _generate(self, request: web.Request) -> web.Response:
        self.requests.append(await request.json())
        if self.error is not None:
            return web.json_response({"error": self.error[1]}, status=self.error[0])
        if self.generated is None:
            values = {o.name: o.values[0] if len(o.values) == 1 else o.values for o in self.outputs}
            return web.json_response({"model_name": "m", "model_version": "1", **values})
        return web.json_response(self.generated)


async def running() -> AsyncIterator[KServe]:
    """A server for one test."""
    kserve = KServe()
    runner = web.AppRunner(kserve.application())
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port: int = runner.addresses[0][1]
    kserve.endpoint = Endpoint("127.0.0.1", port)
    yield kserve
    await runner.cleanup()

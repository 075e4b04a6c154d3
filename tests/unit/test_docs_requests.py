"""The requests of docs/requests.md are those that the examples' models take."""

from __future__ import annotations

import ast
import asyncio
import json
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from specdec_operator.api.configuration import OperatorConfiguration
from specdec_operator.api.v1alpha1.speculative_model import parse
from specdec_operator.cli.documents import read_documents
from specdec_operator.cli.facts import read_facts_file
from specdec_operator.planning.acquire import acquire
from specdec_operator.planning.admission import admit
from specdec_operator.planning.calibration import acquire_texts
from specdec_operator.planning.engines import plan_engines
from specdec_operator.planning.plan import plan_serving
from specdec_operator.runtimes.serving import OPEN_AI_PORT
from specdec_operator.runtimes.table import load_table
from tests.unit.triton import kserve

if TYPE_CHECKING:
    from specdec_operator.runtimes.serving import ServingFiles

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("*.yaml"))
SECTION = re.compile(
    r"^### (?P<title>.+?)\n\n\[examples/(?P<example>[\w.-]+)\.yaml\](?P<text>.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL
)
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LENGTHS = {"max_tokens", "sampling_param_max_tokens"}

server = pytest_asyncio.fixture(kserve.running)


@dataclass(frozen=True)
class Section:
    """One row: its curl request and its inputs for the Python client."""

    model: str
    body: dict[str, Any]
    asked: tuple[str, str]
    inputs: list[tuple[str, str, list[int], Any]]


@pytest.fixture(scope="module")
def text() -> str:
    return (ROOT / "docs" / "requests.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def sections(text: str) -> dict[str, Section]:
    return {found["example"]: _section(found["text"]) for found in SECTION.finditer(text)}


def test_every_example_has_its_requests(sections: dict[str, Section]) -> None:
    assert sorted(sections) == EXAMPLES


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_model_that_is_asked_is_the_endpoint_s(example: str, sections: dict[str, Section]) -> None:
    wanted = _files(example).endpoint_model

    assert (sections[example].model, sections[example].asked[1]) == (wanted, wanted)


@pytest.mark.parametrize("example", EXAMPLES)
def test_what_is_sent_is_what_the_model_takes(example: str, sections: dict[str, Section]) -> None:
    files = _files(example)
    taken = {tensor.name: (tensor.datatype, tensor.shape) for tensor in files.tensors}
    sent = {name: (datatype, tuple(shape)) for name, datatype, shape, _ in sections[example].inputs}

    assert sent.items() <= taken.items()


@pytest.mark.parametrize("example", EXAMPLES)
def test_curl_and_the_client_send_the_same(example: str, sections: dict[str, Section]) -> None:
    assert sections[example].body == {name: value for name, _, _, value in sections[example].inputs}


@pytest.mark.parametrize("example", EXAMPLES)
def test_what_status_asks_clients_to_send_is_sent(example: str, sections: dict[str, Section]) -> None:
    body = sections[example].body
    needed = {name: json.loads(value) for name, value in _files(example).request_parameters.items()}
    # How long an answer may be is each client's own.
    fixed = {name: value for name, value in needed.items() if name != "sampling_parameters"}

    assert fixed.items() <= body.items()
    assert needed.keys() <= body.keys()


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_request_says_how_long_its_answer_may_be(example: str, sections: dict[str, Section]) -> None:
    body = sections[example].body

    assert LENGTHS & (set(body) | set(json.loads(body.get("sampling_parameters", "{}"))))


@pytest.mark.parametrize("example", EXAMPLES)
def test_models_that_answer_in_pieces_are_streamed(example: str, sections: dict[str, Section]) -> None:
    assert sections[example].asked[0] == ("stream" if _files(example).decoupled else "ask")


async def test_the_client_s_functions_ask_a_server(
    server: kserve.KServe, text: str, sections: dict[str, Section]
) -> None:
    helpers = _without_grpc(BLOCK.findall(text.split("## The clients")[1])[0][1])
    names: dict[str, Any] = {}
    exec(compile(helpers, "docs/requests.md", "exec"), names)  # noqa: S102 - our own document
    inputs = sections["draft-target-fast-logits"].inputs
    answer = await asyncio.to_thread(names["ask"], "m", inputs, server.endpoint.address())

    assert answer == "Paris"
    assert [tensor["name"] for tensor in server.requests[0]["inputs"]] == [name for name, *_ in inputs]


def test_openai_s_protocol_is_on_the_front_end_s_port(text: str) -> None:
    told = text.split("## OpenAI's protocol")[1]

    assert f"localhost:{OPEN_AI_PORT}/v1/chat/completions" in told
    assert f'base_url="http://localhost:{OPEN_AI_PORT}/v1"' in told


def _section(text: str) -> Section:
    curl, python = (block for _, block in BLOCK.findall(text))
    words = shlex.split(curl.replace("\\\n", " "))
    model = re.fullmatch(r"localhost:8000/v2/models/(\w+)/generate", words[2])
    assert model is not None
    assert words[:2] == ["curl", "-s"]
    tree = ast.parse(python)
    assert isinstance(tree.body[0], ast.Assign)
    call = next(node for node in ast.walk(tree) if _called(node) in ("ask", "stream"))
    assert isinstance(call, ast.Call)
    return Section(
        model=model[1],
        body=json.loads(words[words.index("-d") + 1]),
        asked=(_called(call), ast.literal_eval(call.args[0])),
        inputs=ast.literal_eval(tree.body[0].value),
    )


def _called(node: ast.AST) -> str:
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


def _without_grpc(helpers: str) -> str:
    # The tests' client has no gRPC; its streaming is read, not run.
    lines = helpers.replace("import tritonclient.grpc as triton_grpc\n", "")
    return lines.split("def stream(")[0]


def _files(example: str) -> ServingFiles:
    document = read_documents(str(ROOT / "examples" / f"{example}.yaml"))[0].content
    document["metadata"].setdefault("namespace", "team")
    made, configuration = parse(document), OperatorConfiguration()
    known = read_facts_file(str(ROOT / "examples" / "facts" / f"{example}.yaml"))
    facts = known.models
    resolution = admit(made, table=load_table(), configuration=configuration)
    models = acquire(made.spec, resolution, configuration=configuration)
    texts = acquire_texts(made.spec, resolution, configuration=configuration)
    places = {request.role: request.yields for request in (*models, *texts) if request.yields}
    engines = plan_engines(made.spec, resolution, facts=facts, models=places, data_sets=known.data_sets)
    return plan_serving(made.spec, resolution, facts=facts, models=models, engines=engines).files

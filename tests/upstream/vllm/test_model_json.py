"""Model repositories of the vLLM backend against vLLM's own sources and Triton's backend."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.upstream.contracts import contract
from tests.upstream.kinds import fields, misfits
from tests.upstream.rendering import cases, releases, render
from tests.upstream.vllm.reading import DRAFTS, Reading

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.upstream.rendering import Rendered

Json = dict[str, Any]


@pytest.fixture(scope="module", params=releases())
def rendered(request: pytest.FixtureRequest) -> list[Rendered]:
    """Every case on a release, refused ones included."""
    return [render(case, request.param) for case in cases("vllm")]


def test_engine_arguments_are_those_of_the_version_inside(rendered: list[Rendered]) -> None:
    assert not [problem for each in served(rendered) for problem in _arguments(each)]


def test_what_drafts_is_what_was_asked_for(rendered: list[Rendered]) -> None:
    for each in served(rendered):
        config = reading(each).speculation(model_json(each))
        assert (reading(each).drafter(config) if config else None) == DRAFTS.get(each.case.method), each


def test_vllm_would_start(rendered: list[Rendered]) -> None:
    assert not [f"{each}: {why}" for each in served(rendered) for why in reading(each).refusals(model_json(each))]


def test_nothing_is_refused_that_the_version_can_do(rendered: list[Rendered]) -> None:
    assert not [f"{each}: {each.refused}" for each in rendered if each.refused and not list(_lacks(each))]


def test_the_model_is_configured_as_triton_s_backend_reads_it(rendered: list[Rendered]) -> None:
    assert not [problem for each in served(rendered) for problem in _configuration(each)]


def test_requests_send_what_the_backend_declares(rendered: list[Rendered]) -> None:
    assert not [problem for each in served(rendered) for problem in _request(each)]


def served(rendered: list[Rendered]) -> list[Rendered]:
    """Those that are not refused."""
    return [each for each in rendered if not each.refused]


def model_json(rendered: Rendered) -> Json:
    """The engine arguments."""
    (model,) = rendered.program_input("assemble")["models"]
    document: Json = json.loads(model["files"]["1/model.json"])
    return document


def reading(rendered: Rendered) -> Reading:
    """The release's vLLM as it is started."""
    environment = rendered.program_input("launch")["environment"]
    return Reading.of(rendered.release, rendered.case.facts, environment)


def _arguments(rendered: Rendered) -> Iterator[str]:
    declared, model = contract("vllm/arguments.yaml").up_to(rendered.release), model_json(rendered)
    nested = model.get("speculative_config", {})
    sampling = json.loads(rendered.program_input("canary")["request"]["sampling_parameters"])
    for section, given in (("engine", model), ("speculative_config", nested), ("sampling", sampling)):
        yield from (f"{rendered}: {section}: {problem}" for problem in misfits(given, fields(declared, section)))


def _lacks(rendered: Rendered) -> Iterator[str]:
    """Why no model.json could make the release draft so, whichever of its engines is asked for."""
    method, tokens = DRAFTS[rendered.case.method], rendered.case.document["spec"]["speculation"]["maxDraftTokens"]
    asked = [Reading.of(rendered.release, rendered.case.facts, {"VLLM_USE_V1": flag}) for flag in "01"]
    found = [[*each.lacks(method, tokens), *_unread(each, method)] for each in asked]
    fewest: list[str] = min(found, key=len)
    yield from fewest


def _unread(reading: Reading, method: str) -> Iterator[str]:
    """EAGLE heads that no path and no method makes known: vLLM then wants their files converted."""
    if method in ("eagle", "eagle3") and method not in {*reading.says.get("heeded", ()), *_paths(reading)}:
        yield f"{method} is not known"


def _paths(reading: Reading) -> set[str]:
    return set(reading.says.get("paths", {}).values())


def _configuration(rendered: Rendered) -> Iterator[str]:
    (declared,) = contract("vllm/backend.yaml").of(rendered.release)
    (model,) = rendered.program_input("assemble")["models"]
    if unknown := set(model["parameters"]) - set(declared["parameters"]):
        yield f"{rendered}: unknown parameters {sorted(unknown)}"
    engine = "V1" if reading(rendered).newer else "V0"
    if model["parameters"].get("REPORT_CUSTOM_METRICS") == "true" and engine not in declared["metrics"]:
        yield f"{rendered}: metrics of {engine}"
    if (kind := model["fields"]["instance_group"][0]["kind"]) != "KIND_MODEL":
        yield f"{rendered}: {kind}"
    if "--disable-auto-complete-config" in rendered.program_input("launch")["argv"]:
        yield f"{rendered}: the backend can't add its inputs"


def _request(rendered: Rendered) -> Iterator[str]:
    (declared,) = contract("vllm/backend.yaml").of(rendered.release)
    types = {"STRING": str, "BOOL": bool}
    for program in ("canary", "liveness"):
        request = rendered.program_input(program)["request"]
        for name, value in request.items():
            if types.get(declared["inputs"].get(name, "")) is not type(value):
                yield f"{rendered}: {program} sends {name}={value!r}"
        yield from (f"{rendered}: {program} lacks {name}" for name in declared["required"] if name not in request)

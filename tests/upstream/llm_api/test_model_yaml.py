"""Model repositories of the LLM API against TensorRT-LLM's own llm_args.py and Triton's template."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest
import yaml

from tests.upstream.contracts import contract
from tests.upstream.kinds import by_kind, fields, misfits
from tests.upstream.rendering import cases, releases, render

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.upstream.rendering import Rendered

Json = dict[str, Any]
KNOWN: Final = [release for release in releases() if contract("llm_api/arguments.yaml").evidence(release)]
SECTIONS: Final = ("kv_cache_config", "scheduler_config", "pytorch_backend_config", "triton_config")
TYPES: Final = {"STRING": (str,), "INT32": (int,), "FP32": (int, float), "BOOL": (bool,)}


@pytest.fixture(scope="module", params=KNOWN)
def rendered(request: pytest.FixtureRequest) -> list[Rendered]:
    """Every case on a release, refused ones included."""
    return [render(case, request.param) for case in cases("llm_api")]


def test_arguments_are_those_of_the_version_inside(rendered: list[Rendered]) -> None:
    assert not [problem for each in served(rendered) for problem in _arguments(each)]


def test_speculation_is_spelled_as_the_version_inside_reads_it(rendered: list[Rendered]) -> None:
    assert not [f"{each}: {problem}" for each in served(rendered) for problem in _speculation(each)]


def test_next_token_layers_are_those_of_a_model_that_the_version_knows(rendered: list[Rendered]) -> None:
    assert not [str(each) for each in served(rendered) if not _knows(each)]


def test_nothing_is_refused_that_the_version_can_do(rendered: list[Rendered]) -> None:
    able = [each for each in rendered if each.case.method in (*_types(each), "None") and _knows(each)]
    assert not [f"{each}: {each.refused}" for each in able if each.refused]


def test_requests_send_what_the_template_declares(rendered: list[Rendered]) -> None:
    assert not [problem for each in served(rendered) for problem in _request(each)]


def test_the_template_s_fields_are_filled_where_the_server_is_told_to_complete_nothing(
    rendered: list[Rendered],
) -> None:
    for each in served(rendered):
        (declared,) = contract("llm_api/template.yaml").of(each.release)
        (model,) = each.program_input("assemble")["models"]
        assert "--disable-auto-complete-config" in each.program_input("launch")["argv"]
        assert set(model["fields"]) == set(declared["fields"])
        assert model["fields"]["max_batch_size"] == model_yaml(each)["triton_config"]["max_batch_size"]


def served(rendered: list[Rendered]) -> list[Rendered]:
    """Those that are not refused."""
    return [each for each in rendered if not each.refused]


def model_yaml(rendered: Rendered) -> Json:
    """The document, with the spellings that are asked of the image as they are expected."""
    (model,) = rendered.program_input("assemble")["models"]
    text = model["files"]["1/model.yaml"]
    for probe in model["probes"]:
        text = text.replace(f"${{{probe['name']}}}", probe["expected"])
    document: Json = yaml.load(text, yaml.CSafeLoader)
    return document


def _knows(rendered: Rendered) -> bool:
    """Whether the version drafts with the layers of the target, where it is asked to."""
    known = [name for row in contract("llm_api/models.yaml").up_to(rendered.release) for name in row["ownLayers"]]
    return rendered.case.method != "MTP" or rendered.case.facts["target"]["architecture"] in known


def _types(rendered: Rendered) -> Mapping[str, Any]:
    """The decoding types of the release, by method."""
    known: dict[str, Any] = {}
    for row in contract("llm_api/arguments.yaml").up_to(rendered.release):
        known |= row.get("decodingTypes", {})
    return known


def _arguments(rendered: Rendered) -> Iterator[str]:
    declared, given = contract("llm_api/arguments.yaml").up_to(rendered.release), model_yaml(rendered)
    top = {name: value for name, value in given.items() if name != "triton_config"}
    yield from (f"{rendered}: {problem}" for problem in misfits(top, fields(declared, "arguments")))
    for section in SECTIONS:
        inner = misfits(given.get(section, {}), fields(declared, section))
        yield from (f"{rendered}: {section}: {problem}" for problem in inner)


def _speculation(rendered: Rendered) -> Iterator[str]:
    declared, model = contract("llm_api/arguments.yaml").up_to(rendered.release), model_yaml(rendered)
    given = model.get("speculative_config")
    if given is None:
        if rendered.case.method != "None":
            yield "does not speculate"
        return
    kind = _types(rendered).get(rendered.case.method)
    if kind is None:
        yield f"{given['decoding_type']} is unknown"
        return
    if given["decoding_type"] not in kind["names"]:
        yield f"decoding_type {given['decoding_type']} is none of {kind['names']}"
    yield from misfits(given, {**fields(declared, "speculative_config"), **by_kind(kind)})
    yield from (f"lacks {' or '.join(keys)}" for keys in kind.get("needs", ()) if not given.keys() & set(keys))
    for name, default in kind.get("positive", {}).items():
        if given.get(name, default) <= 0:
            yield f"{name} must be above 0"
    without = [row["withoutOverlap"] for row in declared if "withoutOverlap" in row][-1]
    knob = _at(model, without["key"])
    if (set(kind["names"]) & set(without["types"]) != set()) != (knob is True):
        yield f"{without['key']} is {knob}"


def _at(document: Json, key: str) -> Any:
    section, _, name = key.rpartition(".")
    return (document.get(section, {}) if section else document).get(name)


def _request(rendered: Rendered) -> Iterator[str]:
    (declared,) = contract("llm_api/template.yaml").of(rendered.release)
    for program in ("canary", "liveness"):
        request = rendered.program_input(program)["request"]
        for name, value in request.items():
            if type(value) not in TYPES.get(declared["inputs"].get(name, ""), ()):
                yield f"{rendered}: {program} sends {name}={value!r}"
        yield from (f"{rendered}: {program} lacks {name}" for name in declared["required"] if name not in request)

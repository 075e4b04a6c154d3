"""Model repositories of the engine backend against the templates of the release's image."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.upstream.contracts import contract
from tests.upstream.rendering import releases
from tests.upstream.rendering import served as served_cases

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tests.upstream.rendering import Json, Rendered

MODELS: Final = ("ensemble", "preprocessing", "postprocessing", "tensorrt_llm", "tensorrt_llm_bls")
JSON_TYPES: Final = {
    "STRING": (str,),
    "BOOL": (bool,),
    "INT32": (int,),
    "UINT64": (int,),
    "FP32": (int, float),
}
KNOWN: Final = [release for release in releases() if contract("engine/template_ensemble.yaml").evidence(release)]


@pytest.fixture(scope="module", params=KNOWN)
def served(request: pytest.FixtureRequest) -> tuple[Rendered, ...]:
    """Every case that a release serves."""
    return served_cases("engine", request.param)


def test_every_variable_of_a_template_is_filled_or_left_empty_on_purpose(served: Sequence[Rendered]) -> None:
    assert not [problem for rendered in served for problem in _unfilled(rendered)]


def test_requests_send_what_the_endpoint_s_template_declares_alone(served: Sequence[Rendered]) -> None:
    assert not [problem for rendered in served for problem in _misfits(rendered)]


def _templates(rendered: Rendered) -> Iterator[tuple[Json, Mapping[str, Any]]]:
    """Each planned model with what its template declares in each version that the image may hold."""
    for model in rendered.program_input("assemble")["models"]:
        name = PurePosixPath(model["candidates"][0]).name
        for declared in contract(f"engine/template_{name}.yaml").of(rendered.release):
            yield model, declared


def _unfilled(rendered: Rendered) -> Iterator[str]:
    for model, declared in _templates(rendered):
        texts = {*declared["parameters"], *declared.get("renamed", {}).values()}
        fields = set(declared["fields"])
        filled, given = set(model["values"]), set(model["values"]) | set(model["optionalValues"])
        said = {
            "has no": filled - fields - texts,
            "is left without": fields - given,
            "is not told of": (fields | texts) - given - set(model["unset"]),
        }
        for what, names in said.items():
            if names:
                yield f"{rendered}: the template of {model['name']} {what} {', '.join(sorted(names))}"


def _misfits(rendered: Rendered) -> Iterator[str]:
    """What Triton would refuse of the small requests: an input that is unknown, mistyped or missing."""
    for program in ("canary", "liveness"):
        given = rendered.program_input(program)
        for model, declared in _templates(rendered):
            if model["name"] == given["model"]:
                yield from (f"{rendered}: {program} {said}" for said in _refused(given["request"], declared))


def _refused(request: Json, declared: Mapping[str, Any]) -> Iterator[str]:
    inputs = {**declared["inputs"], **declared["optionalInputs"]}
    for name, value in request.items():
        datatype = inputs.get(name, "").partition(" ")[0]
        if not datatype:
            yield f"sends the unknown input {name}"
        elif type(value) not in JSON_TYPES[datatype]:
            yield f"sends {value!r} as {name}, which is {datatype}"
    yield from (f"does not send {name}" for name in declared["inputs"] if name not in request)

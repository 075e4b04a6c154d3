"""Command lines of Triton's OpenAI front end against its own main.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.upstream.contracts import contract
from tests.upstream.rendering import cases, releases, render

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.upstream.rendering import Rendered

MAIN: Final = "/opt/tritonserver/python/openai/openai_frontend/main.py"


@pytest.fixture(scope="module", params=releases())
def rendered(request: pytest.FixtureRequest) -> list[Rendered]:
    """Every case on a release, refused ones included."""
    return [render(case, request.param) for case in cases("openai")]


def test_the_front_end_knows_every_option(rendered: list[Rendered]) -> None:
    assert not [f"{each}: {problem}" for each in rendered if not each.refused for problem in _misfits(each)]


def test_a_length_of_its_own_is_refused_only_where_there_is_no_option_for_it(rendered: list[Rendered]) -> None:
    known = "--default-max-tokens" in _options(rendered[0].release)
    assert not [each.refused for each in rendered if "defaultMaxTokens" in each.refused and known]


def _options(release: str) -> dict[str, Any]:
    known: dict[str, Any] = {}
    for row in contract("openai/options.yaml").up_to(release):
        known |= row.get("options", {})
    return known


def _misfits(rendered: Rendered) -> Iterator[str]:
    command = rendered.program_input("launch")["argv"]
    given = dict(argument.partition("=")[::2] for argument in command[command.index(MAIN) + 1 :])
    known, rows = _options(rendered.release), contract("openai/options.yaml").up_to(rendered.release)
    for name, value in given.items():
        kind = known.get(name)
        if kind is None:
            yield f"{name} is unknown"
        elif isinstance(kind, list) and value not in kind:
            yield f"{name} is one of {kind}, not {value}"
        elif (kind == "flag") != (value == "") or (kind == "int" and not value.isdigit()):
            yield f"{name} is {kind}, not {value!r}"
    yield from (f"lacks {name}" for row in rows for name in row.get("required", ()) if name not in given)
    for row in rows:
        for name, needed in row.get("needs", {}).items():
            if name in given and needed not in command:
                yield f"{name} needs {needed}"

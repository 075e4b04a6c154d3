"""The commands of engine builds against the options of the release's programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.upstream.contracts import contract
from tests.upstream.rendering import releases
from tests.upstream.rendering import served as served_cases

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tests.upstream.rendering import Json, Rendered

PROGRAMS: Final = {
    "trtllm-build": "engine/trtllm_build.yaml",
    "/app/examples/redrafter/convert_checkpoint.py": "engine/convert_redrafter.yaml",
}
"""The contract of a program, by its command or its path in the image."""
KNOWN: Final = [release for release in releases() if contract("engine/trtllm_build.yaml").evidence(release)]


@pytest.fixture(scope="module", params=KNOWN)
def built(request: pytest.FixtureRequest) -> tuple[Rendered, ...]:
    """Every case that a release builds."""
    return served_cases("engine", request.param)


def test_a_build_gives_each_program_its_own_options(built: Sequence[Rendered]) -> None:
    assert not [f"{rendered}: {said}" for rendered in built for said in _misuse(rendered)]


def test_pages_of_an_fp8_cache_are_asked_of_formats_that_read_them(built: Sequence[Rendered]) -> None:
    assert not [str(rendered) for rendered in built for build in _builds(rendered) if _reads_no_pages(rendered, build)]


def test_a_drafter_is_added_to_a_target_that_its_converter_takes(built: Sequence[Rendered]) -> None:
    assert not [str(rendered) for rendered in built if rendered.case.method == "ReDrafter" and not _is_taken(rendered)]


def _misuse(rendered: Rendered) -> Iterator[str]:
    for build in _builds(rendered):
        for program, arguments in _commands(build):
            for declared in contract(PROGRAMS[program]).of(rendered.release) if program in PROGRAMS else ():
                yield from (f"{program}: {said}" for said in _wrong(arguments, declared))


def _wrong(arguments: Sequence[str], declared: Mapping[str, Any]) -> Iterator[str]:
    given = _given(arguments)
    for name, value in given.items():
        kind = declared["options"].get(name, "switch" if name in declared["switches"] else None)
        if kind is None:
            yield f"does not know --{name}"
        elif (kind == "switch") != (value is None):
            yield f"--{name} takes {'no' if value else 'a'} value"
        elif (isinstance(kind, list) and value not in kind) or (kind == "integer" and not str(value).isdigit()):
            yield f"--{name} can't be {value}, only {kind}"
    yield from (f"needs --{name}" for name in declared["required"] if name not in given)


def _reads_no_pages(rendered: Rendered, build: Json) -> bool:
    given = {name: value for _, arguments in _commands(build) for name, value in _given(arguments).items()}
    if given["use_paged_context_fmha"] == "disable" or given.get("kv_cache_dtype") is None:
        return False
    rows = contract("engine/trtllm_build.yaml").of(rendered.release)
    return given["kv_cache_dtype"] == "int8" or any(given["qformat"] not in row["pagedFp8Cache"] for row in rows)


def _is_taken(rendered: Rendered) -> bool:
    target = rendered.case.document["spec"]["target"]
    bases = [row["bases"] for row in contract("engine/convert_redrafter.yaml").of(rendered.release)]
    of_kind = all(rendered.case.facts["target"]["architecture"] in base["architectures"] for base in bases)
    return of_kind and (all(base["quantized"] for base in bases) or "quantization" not in target)


def _builds(rendered: Rendered) -> list[Json]:
    return rendered.program_inputs("build")


def _commands(build: Json) -> Iterator[tuple[str, list[str]]]:
    """Each program with its arguments; of a script that may lie in several places the first is its name."""
    for step in build["steps"]:
        argv = step["argv"]
        yield (argv[1].partition("|")[0], argv[2:]) if argv[0] == "python3" else (argv[0], argv[1:])


def _given(arguments: Sequence[str]) -> dict[str, str | None]:
    """Options with their values; None for a switch."""
    given: dict[str, str | None] = {}
    for position, word in enumerate(arguments):
        if word.startswith("--"):
            after = arguments[position + 1] if position + 1 < len(arguments) else "--"
            given[word.removeprefix("--")] = None if after.startswith("--") else after
    return given

"""Documents rendered through the command line, as a user sees it: a file goes in, objects or refusals come out."""

from __future__ import annotations

import functools
import io
import json
import re
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from specdec_operator.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

Json = dict[str, Any]
ROOT: Final = Path(__file__).parents[2]
EXAMPLES: Final = ROOT / "examples"
_UPSTREAM: Final = Path(__file__).parent
_ENGINES: Final = ("target-engine", "draft-engine")


@dataclass(frozen=True)
class Case:
    """A document that is rendered on every release.

    Attributes:
        name: Its name in `cases.yaml`.
        example: The one of examples/ that it is made from.
        document: The SpeculativeModel.
        facts: What its models say of themselves.
    """

    name: str
    example: str
    document: Json
    facts: Json

    @property
    def method(self) -> str:
        """The method that it asks for."""
        return str(self.document["spec"]["speculation"]["method"])


@dataclass(frozen=True)
class Rendered:
    """What the command line made of a case on one release.

    Attributes:
        refused: Why it is refused; empty if it is not.
        objects: The Kubernetes objects; none if it is refused.
    """

    case: Case
    release: str
    refused: str
    objects: tuple[Json, ...]

    def __str__(self) -> str:
        return f"{self.case.name} on {self.release}"

    def program_inputs(self, program: str) -> list[Json]:
        """The inputs of a program of the pods (`assemble`, `build`, `canary`, `check`, `launch`, `liveness`)."""
        return [
            json.loads(text)
            for document in self.objects
            if document["kind"] == "ConfigMap"
            for name, text in document["data"].items()
            if name == f"{program}.json"
        ]

    def program_input(self, program: str) -> Json:
        """The one input of a program, or of its last run."""
        return self.program_inputs(program)[-1]

    def server_environment(self) -> dict[str, str]:
        """The variables of the server container."""
        (deployment,) = (document for document in self.objects if document["kind"] == "Deployment")
        (server,) = (c for c in deployment["spec"]["template"]["spec"]["containers"] if c["name"] == "server")
        return {variable["name"]: variable.get("value", "") for variable in server["env"]}


@functools.cache
def releases() -> tuple[str, ...]:
    """The operator's releases, oldest first, as its documentation lists them."""
    page = (ROOT / "docs" / "capabilities.md").read_text(encoding="utf-8")
    listed = page.partition("## What is inside")[2].partition("\n## ")[0]
    return tuple(sorted(re.findall(r"^\| (\d\d\.\d\d) \|", listed, re.MULTILINE)))


@functools.cache
def cases(folder: str) -> tuple[Case, ...]:
    """The cases of a folder: rows of its `cases.yaml`, each an example with a merge patch of its spec and facts."""
    rows = yaml.load((_UPSTREAM / folder / "cases.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader)
    return tuple(_case(row) for row in rows)


def rendered(folder: str, release: str) -> Iterator[Rendered]:
    """Every case of a folder on a release, refused ones included."""
    for case in cases(folder):
        yield render(case, release)


@functools.cache
def served(folder: str, release: str) -> tuple[Rendered, ...]:
    """Every case of a folder that a release serves."""
    return tuple(found for found in rendered(folder, release) if not found.refused)


def render(case: Case, release: str) -> Rendered:
    """Render a case on a release.

    Raises:
        AssertionError: The command neither renders nor refuses it.
    """
    spec = case.document["spec"]
    document = {**case.document, "spec": {**spec, "runtime": {**spec.get("runtime", {}), "release": release}}}
    with tempfile.TemporaryDirectory() as folder:
        model, facts = Path(folder, "model.yaml"), Path(folder, "facts.yaml")
        model.write_text(json.dumps(document))
        facts.write_text(json.dumps(case.facts))
        code, printed, said = _specdec(["render", str(model), "--facts", str(facts), "--output", "json"])
    assert code in (0, 1), f"{case.name} on {release}: exit code {code}: {said}"
    objects = tuple(_without_sources(each) for each in json.loads(printed)["items"]) if code == 0 else ()
    return Rendered(case, release, said if code else "", objects)


def _without_sources(document: Json) -> Json:
    """An object without the programs of pods, which are most of what is printed."""
    if document["kind"] != "ConfigMap":
        return document
    return {**document, "data": {name: text for name, text in document["data"].items() if not name.endswith(".py")}}


def _specdec(arguments: Sequence[str]) -> tuple[int, str, str]:
    """Run the command line; in this process, since a thousand interpreters would take minutes."""
    printed, said = io.StringIO(), io.StringIO()
    with redirect_stdout(printed), redirect_stderr(said):
        code = main(arguments)
    return code, printed.getvalue(), said.getvalue()


def _case(row: Mapping[str, Any]) -> Case:
    example = row["example"]
    document = _read(EXAMPLES / f"{example}.yaml")
    facts = _read(EXAMPLES / "facts" / f"{example}.yaml")
    return Case(
        name=row.get("name", example),
        example=example,
        document=_patched(document, {"spec": row.get("spec", {})}),
        facts=_patched(facts, row.get("facts", {})),
    )


def _read(file: Path) -> Json:
    document: Json = yaml.load(file.read_text(encoding="utf-8"), yaml.CSafeLoader)
    return document


def _patched(document: Mapping[str, Any], patch: Mapping[str, Any]) -> Json:
    """A document with a JSON merge patch (RFC 7396) applied."""
    result = dict(document)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            inner = result.get(key)
            result[key] = _patched(inner if isinstance(inner, dict) else {}, value)
        else:
            result[key] = value
    return result

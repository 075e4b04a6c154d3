"""What the documents say is so: manifests, commands, targets, paths, links, fields and metrics."""

from __future__ import annotations

import argparse
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from unittest import mock

import pytest
from prometheus_client import CollectorRegistry

import specdec_operator.__main__ as operator_process
import specdec_operator.api.generate as generator
import specdec_operator.cli.main as specdec
import testbed.cluster.__main__ as testbed_cluster
import testbed.demo.__main__ as testbed_demo
import testbed.dev.__main__ as testbed_dev
import testbed.hub.__main__ as testbed_hub
import testbed.operator.__main__ as testbed_operator
import testbed.runtime.__main__ as testbed_runtime
from specdec_operator.api.configuration import OperatorConfiguration
from specdec_operator.api.findings import check_document
from specdec_operator.api.v1alpha1.kinds import KINDS
from specdec_operator.api.yaml_text import read_yaml_documents
from specdec_operator.cluster.lease import LeaseSettings
from specdec_operator.metrics import Metrics
from specdec_operator.runtimes.table import load_table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(
    [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")), *(ROOT / "docs").glob("*.md")]
)
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
TOP_FOLDERS = "|".join(sorted(path.name for path in ROOT.iterdir() if path.is_dir() and path.name[0].isalpha()))
REPOSITORY_PATH = re.compile(rf"(?<![\w./-])(?:{TOP_FOLDERS})/[\w./*-]*")
ROOMS = "api|cli|cluster|planning|pod|reconcile|resources|runtimes|triton"
ROOM_PATH = re.compile(rf"(?<![\w./-])(?:{ROOMS})/\w+\.(?:py|yaml)\b")
COMMAND = re.compile(r"^(?:\.venv/bin/)?((?:python -m (?:testbed|specdec_operator)|specdec )[^\n]*)", re.MULTILINE)
MUST_NOT_EXIST = frozenset({"operator/__init__.py", "manifests/network-policy"})  # the second: an upgrade note
MAINS: Mapping[str, Callable[[list[str]], object]] = {
    "specdec": specdec.main,
    "specdec_operator": lambda _: operator_process.main(),
    "specdec_operator.api.generate": generator.main,
    "testbed.cluster": testbed_cluster.main,
    "testbed.demo": testbed_demo.main,
    "testbed.dev": testbed_dev.main,
    "testbed.hub": lambda _: testbed_hub.main(),
    "testbed.operator": testbed_operator.main,
    "testbed.runtime": testbed_runtime.main,
}
"""What each command runs; those that take no arguments read the process's own."""


@dataclass(frozen=True)
class Block:
    """A fenced block of a document."""

    document: str
    language: str
    text: str


class Parsed(Exception):  # noqa: N818 - it is what a test waits for
    """A command line was understood; nothing is run."""


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in DOCUMENTS}


@pytest.fixture(scope="module")
def blocks(texts: dict[str, str]) -> list[Block]:
    return [Block(name, *found) for name, text in texts.items() for found in FENCE.findall(text)]


def test_every_manifest_is_valid(blocks: list[Block]) -> None:
    manifests = [
        (block.document, document)
        for block in blocks
        for document in _yaml_documents(block)
        if str(document.get("apiVersion", "")).startswith("specdec.dev/")
    ]

    assert manifests
    assert not {name: findings for name, document in manifests if (findings := check_document(document))}


def test_every_release_row_is_a_release(blocks: list[Block]) -> None:
    rows = [row for block in blocks for document in _yaml_documents(block) for row in document.get("releases", [])]

    assert {row["name"] for row in rows} == {"26.04-fixed"}
    assert load_table(rows).find("26.04-fixed") is not None


def test_every_make_target_exists(texts: dict[str, str]) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = {target for text in texts.values() for target in re.findall(r"(?:`|^)make ([a-z-]+)", text, re.MULTILINE)}

    assert {"demo", "test"} <= named
    assert named <= targets


def test_every_target_of_the_makefile_is_told_to_contributors(texts: dict[str, str]) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE)) - {"help"}

    assert targets <= set(re.findall(r"^\| `make ([a-z-]+)` \|", texts["CONTRIBUTING.md"], re.MULTILINE))


def test_every_repository_path_exists(texts: dict[str, str]) -> None:
    named = {path.rstrip(".") for name, text in texts.items() if name != "CHANGELOG.md" for path in _paths(text)}

    assert {path for path in named if path.startswith("operator/")}
    assert {path for path in named if not _exists(path)} <= MUST_NOT_EXIST


def test_every_module_of_a_room_exists(texts: dict[str, str]) -> None:
    package = ROOT / "operator" / "specdec_operator"
    named = set(ROOM_PATH.findall(texts["docs/architecture.md"]))

    assert len(named) > 20
    assert not [path for path in named if not (package / path).is_file()]


def test_every_relative_link_leads_somewhere(texts: dict[str, str]) -> None:
    links = [(name, link) for name, text in texts.items() for link in LINK.findall(text) if "://" not in link]

    assert links
    assert not [found for found in links if not _leads_somewhere(*found, texts)]


def test_every_command_parses(blocks: list[Block]) -> None:
    commands = [command.split("#")[0] for block in blocks for command in COMMAND.findall(block.text)]

    assert {_program(command) for command in commands} >= {"specdec", "testbed.cluster", "testbed.hub"}
    assert not [command for command in commands if not _parses(command)]


def test_every_subcommand_named_in_a_sentence_exists(texts: dict[str, str]) -> None:
    named = {name for text in texts.values() for name in re.findall(r"`specdec (\w+)", text)}

    assert named
    for name in named:
        assert specdec.main([name, "--help"]) == 0


def test_kubectl_is_given_names_of_resources_that_there_are(texts: dict[str, str]) -> None:
    known = {name for kind in KINDS for name in (kind.plural, *kind.short_names)}
    given = re.compile(r"kubectl[^\n`]*?\s((?:specmodel|speculativemodel|modelartifact)\w*)")
    named = {name for text in texts.values() for name in given.findall(text)}

    assert named
    assert named <= known


def test_every_field_of_the_configuration_is_told(texts: dict[str, str]) -> None:
    told = re.findall(r"^\| `(\w+)` \|", texts["docs/operations.md"], re.MULTILINE)

    assert {field.alias for field in OperatorConfiguration.model_fields.values()} <= set(told)


@pytest.mark.parametrize(
    "field", ["resync_seconds", "workers", "job_attempts", "job_hours", "cluster_domain", "instance"]
)
def test_a_default_of_the_configuration_is_told_as_it_is(field: str, texts: dict[str, str]) -> None:
    described = OperatorConfiguration.model_fields[field]

    assert f"| `{described.alias}` | `{described.default}` |" in texts["docs/operations.md"]


def test_the_metrics_that_are_told_are_those_that_there_are(texts: dict[str, str]) -> None:
    registry = CollectorRegistry()
    Metrics(registry)
    metrics = {f"{metric.name}{'_total' if metric.type == 'counter' else ''}" for metric in registry.collect()}

    assert set(re.findall(r"^\| `([a-z]+_[a-z_]+)` \|", texts["docs/operations.md"], re.MULTILINE)) == metrics


def test_the_times_of_the_lease_are_told_as_they_are(texts: dict[str, str]) -> None:
    lease = LeaseSettings(namespace="any", name="any", identity="any")
    told = (
        f"{lease.duration:g} seconds; renewed every {lease.retry_period:g}; a leader that could not renew for "
        f"{lease.renew_deadline:g} seconds"
    )

    assert told in texts["docs/operations.md"]


def test_the_image_of_the_manifests_is_the_one_that_is_told(texts: dict[str, str]) -> None:
    objects = read_yaml_documents((ROOT / "manifests" / "operator.yaml").read_text(encoding="utf-8"))
    deployment = next(document for document in objects if document["kind"] == "Deployment")
    image = deployment["spec"]["template"]["spec"]["containers"][0]["image"]

    assert f"`{image}`" in texts["README.md"]
    assert f"`{image}`" in texts["docs/operations.md"]


def test_the_readme_shows_manifest_commands_and_result_on_its_first_screen(texts: dict[str, str]) -> None:
    first_screen = "\n".join(texts["README.md"].splitlines()[:48])

    assert all(shown in first_screen for shown in ("kind: SpeculativeModel", "make demo", "make test", "answer:"))


def _yaml_documents(block: Block) -> list[dict[str, Any]]:
    if block.language != "yaml":
        return []
    return [document for document in read_yaml_documents(block.text) if isinstance(document, dict)]


def _paths(text: str) -> list[str]:
    # Links are relative to their document and have a test of their own.
    return REPOSITORY_PATH.findall(LINK.sub("", text))


def _exists(path: str) -> bool:
    return any(ROOT.glob(path)) if "*" in path else (ROOT / path).exists()


def _leads_somewhere(document: str, link: str, texts: dict[str, str]) -> bool:
    path, _, anchor = link.partition("#")
    target = (ROOT / document).parent / path if path else ROOT / document
    if not target.exists():
        return False
    name = str(target.resolve().relative_to(ROOT))
    return not anchor or anchor in _anchors(texts.get(name) or target.read_text(encoding="utf-8"))


def _anchors(text: str) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _program(command: str) -> str:
    words = shlex.split(command)
    return words[2] if words[1:2] == ["-m"] else "specdec"


def _parses(command: str) -> bool:
    words, program = shlex.split(command), _program(command)
    arguments = words[1:] if program == "specdec" else words[3:]
    parse = argparse.ArgumentParser.parse_args

    def stop_when_parsed(parser: argparse.ArgumentParser, given: Sequence[str] | None = None) -> NoReturn:
        parse(parser, given)
        raise Parsed

    def stop_when_called(*_parsed: object, **_options: object) -> NoReturn:
        raise Parsed

    with (
        mock.patch("sys.argv", [program, *arguments]),
        mock.patch.object(argparse.ArgumentParser, "parse_args", stop_when_parsed),
        mock.patch("specdec_operator.cli.render.command.callback", stop_when_called),
        mock.patch("specdec_operator.cli.validate.command.callback", stop_when_called),
    ):
        try:
            MAINS[program](arguments)
        except Parsed:
            return True
        except SystemExit:
            return False
    return False

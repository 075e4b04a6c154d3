"""`specdec validate FILE…`: everything that is wrong with the models of some files, without a cluster.

An operator may have a default store and a default GPU product; only with --configuration is it an error to leave out
what it has no default for.

Exit code 0: all are valid. 1: there are findings. 2: a file cannot be read.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from specdec_operator.api.configuration import (
    ConfigurationError,
    OperatorConfiguration,
    read_configuration,
)
from specdec_operator.api.findings import Finding, as_stored, check_document
from specdec_operator.api.v1alpha1 import GROUP
from specdec_operator.api.v1alpha1.kinds import KINDS
from specdec_operator.api.v1alpha1.speculative_model import parse
from specdec_operator.cli.documents import STDIN, Document, read_documents
from specdec_operator.cli.errors import UnreadableFileError
from specdec_operator.planning.admission import refusals
from specdec_operator.runtimes.configured import configured_table
from specdec_operator.runtimes.table import CapabilityTable, TableError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Collection

_SETTLED_BY_DEFAULTS: Final = frozenset({"StorageRequired", "GpuProductRequired"})
_FOLLOWS_FROM_RULES: Final = frozenset({"MethodNotInRelease"})
"""What an object that puts a method on the wrong backend is refused for, too."""


@dataclass(frozen=True, kw_only=True)
class Admission:
    """What the operator would refuse.

    Attributes:
        strict: Whether the configuration is the operator's own, so that it is known what has no default.
    """

    table: CapabilityTable
    configuration: OperatorConfiguration
    strict: bool

    def check(self, document: dict[str, Any], *, said: Collection[Finding]) -> list[Finding]:
        """Find what the spec alone shows to be wrong, beside what was already said of the object.

        An object whose fields can't be read is not looked at; of one that breaks rules, what follows from them is
        left out.
        """
        if document.get("kind") != "SpeculativeModel":
            return []
        try:
            model = parse({**as_stored(document), "metadata": {"name": "model"}, "status": {}})
        except ValidationError:
            return []
        silent = frozenset() if self.strict else _SETTLED_BY_DEFAULTS
        silent |= _FOLLOWS_FROM_RULES if said else frozenset()
        paths = {finding.path for finding in said}
        found = refusals(model, table=self.table, configuration=self.configuration)
        return [Finding(r.path, r.message) for r in found if r.reason not in silent and r.path not in paths]


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand `validate`."""
    parser = commands.add_parser(
        "validate", help="find everything that is wrong with models, without a cluster", description=__doc__
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help=f"YAML file; {STDIN} for standard input")
    parser.add_argument("--configuration", metavar="FILE", type=Path, help="the operator's configuration")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Validate the files and print one line per finding, valid object or object of another API."""
    try:
        admission = _admission(arguments.configuration)
    except (ConfigurationError, TableError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return max(_validate_file(file, admission) for file in arguments.files)


def _admission(file: Path | None) -> Admission:
    configuration = read_configuration(file)
    return Admission(table=configured_table(configuration), configuration=configuration, strict=file is not None)


def _validate_file(file: str, admission: Admission) -> int:
    try:
        documents = read_documents(file)
    except UnreadableFileError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    if not documents:
        print(f"{file}: nothing to validate: the file holds no object")
    return max((_validate(document, admission) for document in documents), default=0)


def _validate(document: Document, admission: Admission) -> int:
    place = f"{document.file}:{document.name}"
    if not _is_ours(document.content):
        print(f"{place}: skipped: {document.content['kind']} is not of {GROUP}")
        return 0
    findings = check_document(document.content)
    findings += admission.check(document.content, said=findings)
    for found in findings:
        print(": ".join(part for part in (place, found.path, found.message) if part))
    if not findings:
        print(f"{place}: valid")
    return 1 if findings else 0


def _is_ours(content: dict[str, Any]) -> bool:
    if "kind" not in content or "apiVersion" not in content:
        return True
    ours = {resource.kind for resource in KINDS}
    return content["kind"] in ours or str(content["apiVersion"]).startswith(f"{GROUP}/")

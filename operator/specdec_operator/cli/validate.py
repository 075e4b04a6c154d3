"""`specdec validate FILE…`: everything that is wrong with the models of some files, without a cluster.

Exit code 0: all are valid. 1: there are findings. 2: a file cannot be read.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from specdec_operator.api.findings import Finding, check_document
from specdec_operator.api.v1alpha1 import GROUP
from specdec_operator.api.v1alpha1.kinds import KINDS
from specdec_operator.cli.documents import STDIN, Document, read_documents
from specdec_operator.cli.errors import UnreadableFileError

if TYPE_CHECKING:
    import argparse

Check = Callable[[dict[str, Any]], list[Finding]]

CHECKS: Final[tuple[Check, ...]] = (check_document,)
"""In order; a later one sees only objects in which the earlier ones found nothing."""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand `validate`."""
    parser = commands.add_parser(
        "validate", help="find everything that is wrong with models, without a cluster", description=__doc__
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help=f"YAML file; {STDIN} for standard input")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Validate the files and print one line per finding, valid object or object of another API."""
    return max(_validate_file(file) for file in arguments.files)


def _validate_file(file: str) -> int:
    try:
        documents = read_documents(file)
    except UnreadableFileError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    if not documents:
        print(f"{file}: nothing to validate: the file holds no object")
    return max((_validate(document) for document in documents), default=0)


def _validate(document: Document) -> int:
    place = f"{document.file}:{document.name}"
    if not _is_ours(document.content):
        print(f"{place}: skipped: {document.content['kind']} is not of {GROUP}")
        return 0
    findings = _findings(document.content)
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


def _findings(content: dict[str, Any]) -> list[Finding]:
    for check in CHECKS:
        findings = check(content)
        if findings:
            return findings
    return []

"""`specdec validate`: everything that is wrong with manifests, without a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click
from pydantic import ValidationError

from specdec_operator.api.configuration import ConfigurationError, OperatorConfiguration, read_configuration
from specdec_operator.api.findings import Finding, as_stored, check_document, place_in
from specdec_operator.api.v1alpha1 import GROUP
from specdec_operator.api.v1alpha1.kinds import KINDS
from specdec_operator.api.v1alpha1.speculative_model import parse
from specdec_operator.cli import options
from specdec_operator.cli.documents import EmptyFile, Manifest, read_objects
from specdec_operator.cli.errors import CommandLineError, UnreadableFileError
from specdec_operator.cli.report import ObjectReport, TextReport, Verdict
from specdec_operator.planning.admission import refusals
from specdec_operator.planning.remarks import remarks
from specdec_operator.runtimes.configured import configured_table
from specdec_operator.runtimes.table import CapabilityTable, TableError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path

    from specdec_operator.cli.report import Report
    from specdec_operator.planning.refusal import Refusal

INVALID, UNREADABLE = 1, 2
_DEFAULTS: Final = {"StorageRequired": "storage", "GpuProductRequired": "gpuProduct"}
"""The field of the operator's configuration that has the default, by the reason of what is refused without."""
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

    def check(
        self, document: dict[str, Any], *, said: Collection[Finding]
    ) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
        """Find what the spec alone shows to be wrong beside what was already said of the object, and what to note.

        An object whose fields can't be read is not looked at; of one that breaks rules, what follows from them is
        left out.
        """
        if document.get("kind") != "SpeculativeModel":
            return (), ()
        try:
            model = parse({**as_stored(document), "metadata": {"name": "model"}, "status": {}})
        except ValidationError:
            return (), ()
        found = refusals(model, table=self.table, configuration=self.configuration)
        settled = () if self.strict else tuple(r for r in found if r.reason in _DEFAULTS)
        needed = (Finding(r.path, _left_out(r), r.reason) for r in settled)
        notes = (*needed, *(Finding(remark.path, remark.message) for remark in remarks(model.spec)))
        return tuple(_beside(said, (r for r in found if r not in settled))), notes


def _left_out(refusal: Refusal) -> str:
    return f"left out, so the operator's configuration must have a default ({_DEFAULTS[refusal.reason]})"


def _beside(said: Collection[Finding], found: Iterable[Refusal]) -> Iterable[Finding]:
    silent = _FOLLOWS_FROM_RULES if said else frozenset()
    paths = {finding.path for finding in said}
    return (Finding(r.path, r.message, r.reason) for r in found if r.reason not in silent and r.path not in paths)


@click.command(
    name="validate",
    short_help="Find everything that is wrong with manifests.",
    epilog="Exit codes: 0 all are valid; 1 something is wrong; 2 something can't be read.",
)
@options.manifests
@options.configuration
@options.output("text", "json", "yaml")
def command(files: tuple[str, ...], *, recursive: bool, configuration: Path | None, output: str) -> int:
    """Find everything that is wrong with manifests, without a cluster.

    The API server or the operator would refuse the same objects. Objects of other APIs are skipped.

    An operator may have a default store and a default GPU product. What needs one is noted; with --configuration it is
    an error where that file has none.

    \b
      specdec validate examples/eagle3-llama-3.1-8b.yaml
      specdec validate -R -f manifests/ -o json
      kubectl get specmodel -o yaml | specdec validate -f -
    """  # noqa: D301  click wants the character
    admission = _admission(configuration)
    report = TextReport() if output == "text" else ObjectReport(output)
    code = max([_judge(found, admission, report) for found in read_objects(files, recursive=recursive)], default=0)
    report.end()
    return code


def _admission(file: Path | None) -> Admission:
    try:
        configuration = read_configuration(file)
        table = configured_table(configuration)
    except (ConfigurationError, TableError) as error:
        raise CommandLineError(str(error)) from error
    return Admission(table=table, configuration=configuration, strict=file is not None)


def _judge(found: Manifest | UnreadableFileError | EmptyFile, admission: Admission, report: Report) -> int:
    if isinstance(found, UnreadableFileError):
        report.unreadable(found)
        return UNREADABLE
    if isinstance(found, EmptyFile):
        report.empty(found)
        return 0
    verdict = _verdict(found, admission)
    report.verdict(verdict)
    return INVALID if verdict.findings else 0


def _verdict(manifest: Manifest, admission: Admission) -> Verdict:
    if not _is_ours(manifest.content):
        return Verdict(manifest=manifest, result="skipped")
    findings = tuple(check_document(manifest.content, written=manifest.document.written))
    refused, notes = admission.check(manifest.content, said=findings)
    found = (*findings, *refused)
    surprises = (Finding(place_in(manifest.content, place), said) for place, said in manifest.document.surprises())
    wrong = {finding.path for finding in found}
    return Verdict(
        manifest=manifest,
        result="invalid" if found else "valid",
        findings=found,
        notes=(*(() if found else notes), *(note for note in surprises if note.path not in wrong)),
    )


def _is_ours(content: dict[str, Any]) -> bool:
    kind, version = content.get("kind"), content.get("apiVersion")
    if not isinstance(kind, str) or not isinstance(version, str):
        return True
    return kind in {resource.kind for resource in KINDS} or version.startswith(f"{GROUP}/")

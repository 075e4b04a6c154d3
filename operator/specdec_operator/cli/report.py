"""What `specdec validate` says: lines for people, or one object for programs."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

import click

from specdec_operator.api.yaml_text import write_yaml
from specdec_operator.cli.terminal import say

if TYPE_CHECKING:
    from specdec_operator.api.findings import Finding
    from specdec_operator.cli.documents import EmptyFile, Manifest
    from specdec_operator.cli.errors import UnreadableFileError


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What is to be said of one object.

    Attributes:
        findings: What is wrong.
        notes: What is not wrong, but good to know.
    """

    manifest: Manifest
    result: Literal["valid", "invalid", "skipped"]
    findings: tuple[Finding, ...] = ()
    notes: tuple[Finding, ...] = ()


class Report(Protocol):
    """Takes what is found, in the order in which it is."""

    def verdict(self, verdict: Verdict) -> None:
        """Of an object."""

    def empty(self, file: EmptyFile) -> None:
        """Of a file without an object."""

    def unreadable(self, error: UnreadableFileError) -> None:
        """Of what can't be read."""

    def end(self) -> None:
        """Nothing else will be found."""


class TextReport:
    """A line for each finding, valid object, skipped object and note; what can't be read goes to standard error."""

    def verdict(self, verdict: Verdict) -> None:
        """Print an object's lines."""
        manifest = verdict.manifest
        if verdict.result == "skipped":
            say(f"{manifest.place}: skipped: {manifest.kind} is not of specdec.dev")
        if verdict.result == "valid":
            say(f"{manifest.place}: valid")
        for found in verdict.findings:
            say(": ".join(part for part in (manifest.place, found.path, found.message) if part))
        for note in verdict.notes:
            say(f"{manifest.place}: note: {note.path}: {note.message}")

    def empty(self, file: EmptyFile) -> None:
        """Print that there is nothing to say."""
        say(f"{file.file}: nothing to validate: the file holds no object")

    def unreadable(self, error: UnreadableFileError) -> None:
        """Print an error."""
        say(str(error), error=True)

    def end(self) -> None:
        """Print nothing more."""


@dataclass(frozen=True)
class ObjectReport:
    """One object, in JSON or YAML, once everything is found."""

    form: str
    _objects: list[dict[str, Any]] = field(default_factory=list)
    _unreadable: list[dict[str, Any]] = field(default_factory=list)

    def verdict(self, verdict: Verdict) -> None:
        """Keep an object's verdict."""
        manifest = verdict.manifest
        said = {
            "file": manifest.file,
            "line": manifest.document.line,
            "kind": manifest.kind,
            "name": manifest.name,
            "result": verdict.result,
            "findings": [_finding(found) for found in verdict.findings],
            "notes": [_finding(note) for note in verdict.notes],
        }
        self._objects.append(said)

    def empty(self, file: EmptyFile) -> None:
        """Keep nothing: no object, no verdict."""

    def unreadable(self, error: UnreadableFileError) -> None:
        """Keep an error."""
        place = {"file": error.file} if error.line is None else {"file": error.file, "line": error.line}
        self._unreadable.append({**place, "message": error.problem})

    def end(self) -> None:
        """Print everything."""
        found = {"objects": self._objects, "unreadable": self._unreadable}
        text = json.dumps(found, indent=2) + "\n" if self.form == "json" else write_yaml(found, allow_unicode=True)
        click.echo(text, nl=False)


def _finding(found: Finding) -> dict[str, str]:
    return {key: value for key, value in asdict(found).items() if value}

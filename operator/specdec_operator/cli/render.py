"""`specdec render`: everything that the operator would apply for models, without a cluster."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from pydantic import ValidationError

from specdec_operator.api.configuration import ConfigurationError, read_configuration
from specdec_operator.api.findings import as_stored, check_document
from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModel, parse
from specdec_operator.cli import options
from specdec_operator.cli.documents import Manifest, read_objects
from specdec_operator.cli.errors import CommandLineError, UnreadableFileError
from specdec_operator.cli.facts import inspect_models, joined, read_facts_file
from specdec_operator.cli.output import as_yaml
from specdec_operator.cli.terminal import say
from specdec_operator.planning.refusal import Refused
from specdec_operator.planning.remarks import remarks
from specdec_operator.resources.known import Known
from specdec_operator.resources.render import Renderer
from specdec_operator.resources.template import Templates
from specdec_operator.runtimes.configured import configured_table
from specdec_operator.runtimes.table import TableError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specdec_operator.resources.template import JsonObject

REFUSED, UNREADABLE, MISSING = 1, 2, 3
KIND: Final = "SpeculativeModel"


@click.command(
    name="render",
    short_help="Print everything that the operator would apply.",
    epilog="Exit codes: 0 everything is printed; 1 the operator would refuse a model; 2 something can't be read; 3 "
    "something is missing, and zeros stand for it. What is refused, missing or compared goes to standard error.",
)
@options.manifests
@click.option(
    "--facts",
    metavar="FILE",
    help="What models and Jobs said: a file as in examples/facts/, or a cluster's ModelArtifacts. A directory holds "
    "NAME.yaml for each model, or a file named like the manifest.",
)
@click.option(
    "--model-files",
    metavar="ROLE=DIRECTORY",
    multiple=True,
    help="A directory that holds the target or the draft, as in target=models/llama; once for each.",
)
@options.configuration
@click.option("-n", "--namespace", metavar="NAME", help="The namespace of models that name none.")
@options.output("yaml", "json", "name")
def command(
    *,
    files: tuple[str, ...],
    recursive: bool,
    facts: str | None,
    model_files: tuple[str, ...],
    configuration: Path | None,
    namespace: str | None,
    output: str,
) -> int:
    """Print everything that the operator would apply for models, without a cluster.

    Each model's objects are in the order in which they are applied, with the first attempt of each Job. What models and
    Jobs say of themselves comes from --facts and --model-files. Without, what can be known is printed.

    The UIDs of owners are known to a cluster alone and printed as zeros; so are commits and digests that nothing tells.
    The annotation specdec.dev/placeholder of an object says which.

    \b
      specdec render examples/eagle3-llama-3.1-8b.yaml \\
        --facts examples/facts/eagle3-llama-3.1-8b.yaml
      specdec render -f model.yaml --model-files target=models/llama -o name
    """  # noqa: D301  click wants the character
    renderer = _renderer(configuration)
    manifests, code = _models(files, recursive=recursive)
    sources = _Sources(facts, model_files)
    sources.check(manifests)
    session = _Session(renderer, sources, namespace)
    codes = {code, *(session.render(manifest) for manifest in manifests)}
    _print(session.objects, output)
    return next(code for code in (UNREADABLE, REFUSED, MISSING, 0) if code in codes)


def _renderer(configuration_file: Path | None) -> Renderer:
    try:
        configuration = read_configuration(configuration_file)
        table = configured_table(configuration)
    except (ConfigurationError, TableError) as error:
        raise CommandLineError(str(error)) from error
    return Renderer(table=table, configuration=configuration, templates=Templates())


def _models(files: Sequence[str], *, recursive: bool) -> tuple[list[Manifest], int]:
    """The models of all files, and the exit code as far as they could be read."""
    found = list(read_objects(files, recursive=recursive))
    unreadable = [each for each in found if isinstance(each, UnreadableFileError)]
    models = [each for each in found if isinstance(each, Manifest) and each.kind == KIND]
    say(*map(str, unreadable), error=True)
    if not models and not unreadable:
        raise CommandLineError(f"{', '.join(files)}: no {KIND} in it")
    return models, UNREADABLE if unreadable else 0


@dataclass(frozen=True)
class _Sources:
    """Where what models and Jobs said comes from."""

    facts: str | None
    model_files: tuple[str, ...]

    def check(self, models: Sequence[Manifest]) -> None:
        """See that they speak of one model where they can't speak of several.

        Raises:
            CommandLineError: They are given for several.
        """
        if len(models) < 2:
            return
        if self.model_files:
            raise CommandLineError("--model-files speaks of one model: render one, or give --facts with a directory")
        if self.facts and not Path(self.facts).is_dir():
            raise CommandLineError(f"--facts {self.facts}: for several models give a directory with a file for each")

    def of(self, manifest: Manifest, model: SpeculativeModel) -> Known:
        """What is known of a model.

        Raises:
            CommandLineError: Something can't be read, or is of another model.
        """
        file = self._file(manifest)
        known = read_facts_file(file, spec=model.spec) if file else Known()
        return joined(known, inspect_models(self.model_files))

    def _file(self, manifest: Manifest) -> str | None:
        if self.facts is None or not Path(self.facts).is_dir():
            return self.facts
        named = [Path(self.facts) / name for name in (f"{manifest.name}.yaml", Path(manifest.file).name)]
        return next((str(file) for file in named if file.is_file()), None)


@dataclass
class _Session:
    """Renders one model after the other, and says on standard error what is to be said of each."""

    renderer: Renderer
    sources: _Sources
    namespace: str | None
    objects: list[JsonObject] = field(default_factory=list)

    def render(self, manifest: Manifest) -> int:
        """Render a model; return the exit code."""
        try:
            model = _model(manifest, self.namespace)
            rendering = self.renderer.render(model, self.sources.of(manifest, model))
        except CommandLineError as error:
            say(*str(error).splitlines(), error=True)
            return UNREADABLE
        except _WrongModel as wrong:
            say(*(f"{manifest.place}: {line}" for line in wrong.lines), error=True)
            return REFUSED
        except Refused as refused:
            say(*(f"{manifest.place}: {refusal} ({refusal.reason})" for refusal in refused.refusals), error=True)
            return REFUSED
        self.objects += rendering.objects
        if rendering.verdict:
            say(f"{manifest.place}: {rendering.verdict.reason}: {rendering.verdict.message}", error=True)
        say(*(f"{manifest.place}: {remark}" for remark in remarks(model.spec)), error=True)
        say(*(f"{manifest.place}: missing: {what}" for what in rendering.missing), error=True)
        return MISSING if rendering.missing else 0


class _WrongModel(Exception):  # noqa: N818 - it is the answer, not a defect of the program
    """The API server would refuse a model."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__("; ".join(lines))
        self.lines = lines


def _model(manifest: Manifest, namespace: str | None) -> SpeculativeModel:
    if findings := check_document(manifest.content, written=manifest.document.written):
        raise _WrongModel([f"{found.path}: {found.message}" for found in findings])
    try:
        model = parse({**as_stored(manifest.content), "status": {}})
    except ValidationError as error:
        raise _WrongModel([f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()]) from error
    named = manifest.content["metadata"].get("namespace")
    if namespace is None or named == namespace:
        return model
    if named is not None:
        raise CommandLineError(
            f"{manifest.place}: metadata.namespace is {named}, --namespace is {namespace}: leave one out"
        )
    return model.model_copy(update={"metadata": model.metadata.model_copy(update={"namespace": namespace})})


def _print(objects: Sequence[JsonObject], output: str) -> None:
    if output == "json":
        listed: dict[str, Any] = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        click.echo(json.dumps(listed, indent=2, ensure_ascii=False))
    elif output == "name":
        click.echo("".join(f"{_name(document)}\n" for document in objects), nl=False)
    else:
        click.echo(as_yaml(objects), nl=False)


def _name(document: JsonObject) -> str:
    group = document["apiVersion"].rpartition("/")[0].partition("/")[0]
    kind = document["kind"].lower()
    return f"{kind}.{group}/{document['metadata']['name']}" if group else f"{kind}/{document['metadata']['name']}"

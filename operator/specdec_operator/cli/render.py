"""`specdec render FILE`: everything that the operator would apply for a model, without a cluster.

Several files are printed one after the other, each model's objects in the order in which they are applied, with the
first attempt of each Job. Owners' UIDs are known to the cluster only: they are printed as
00000000-0000-0000-0000-000000000000. What the models and the Jobs say of themselves comes from --facts or
--model-files; without it, what can be known is printed, and what is missing is said.

Exit code 0: everything was printed. 1: the operator would refuse the model. 2: a file cannot be read. 3: something is
missing.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from specdec_operator.api.configuration import ConfigurationError, read_configuration
from specdec_operator.api.findings import as_stored, check_document
from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModel, parse
from specdec_operator.cli.documents import STDIN, Document, read_documents
from specdec_operator.cli.errors import CommandLineError
from specdec_operator.cli.facts import inspect_models, read_facts_file
from specdec_operator.cli.output import as_yaml
from specdec_operator.planning.refusal import Refused
from specdec_operator.resources.known import Known
from specdec_operator.resources.render import Renderer
from specdec_operator.resources.template import Templates
from specdec_operator.runtimes.configured import configured_table
from specdec_operator.runtimes.table import TableError

if TYPE_CHECKING:
    import argparse

REFUSED, UNREADABLE, MISSING = 1, 2, 3


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand `render`."""
    parser = commands.add_parser(
        "render", help="print everything that the operator would apply, without a cluster", description=__doc__
    )
    parser.add_argument(
        "files", metavar="FILE", nargs="+", help=f"YAML file with one SpeculativeModel; {STDIN} for standard input"
    )
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--facts",
        metavar="FILE",
        help="YAML file: target and draft (model facts), targetCalibration and draftCalibration (commit or "
        "contentDigest of a quantizer's texts), engines and assembly (digests); for several models a directory with a "
        "file of the same name for each",
    )
    source.add_argument(
        "--model-files",
        metavar="ROLE=DIRECTORY",
        action="append",
        default=[],
        help="a directory that holds the target or the draft, as in target=models/llama; once per role",
    )
    parser.add_argument("--configuration", metavar="FILE", type=Path, help="the operator's configuration")
    parser.add_argument("--namespace", metavar="NAME", help="the namespace of a model whose file names none")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Render models: objects to standard output, everything else to standard error."""
    try:
        renderer = _renderer(arguments.configuration)
        _check_several(arguments)
    except (CommandLineError, ConfigurationError, TableError) as error:
        _say(str(error))
        return UNREADABLE
    codes = {_run(file, arguments, renderer) for file in arguments.files}
    return next(code for code in (UNREADABLE, REFUSED, MISSING, 0) if code in codes)


def _check_several(arguments: argparse.Namespace) -> None:
    if len(arguments.files) == 1:
        return
    if arguments.model_files:
        raise CommandLineError("--model-files speaks of one model: give one FILE, or --facts with a directory")
    if arguments.facts and not Path(arguments.facts).is_dir():
        raise CommandLineError(f"--facts {arguments.facts}: for several FILEs give a directory with a file for each")


def _run(file: str, arguments: argparse.Namespace, renderer: Renderer) -> int:
    try:
        model = _model(file, arguments.namespace)
        known = _known(file, arguments)
    except CommandLineError as error:
        _say(str(error))
        return UNREADABLE
    if isinstance(model, list):
        _say(*model)
        return REFUSED
    return _render(file, model, known=known, renderer=renderer)


def _known(file: str, arguments: argparse.Namespace) -> Known:
    if not arguments.facts:
        return inspect_models(arguments.model_files)
    facts = Path(arguments.facts)
    if not facts.is_dir():
        return read_facts_file(arguments.facts)
    own = facts / Path(file).name
    return read_facts_file(str(own)) if own.is_file() else Known()


def _render(file: str, model: SpeculativeModel, *, known: Known, renderer: Renderer) -> int:
    try:
        rendering = renderer.render(model, known)
    except Refused as refused:
        _say(*(f"{file}:{model.metadata.name}: {refusal} ({refusal.reason})" for refusal in refused.refusals))
        return REFUSED
    sys.stdout.write(as_yaml(rendering.objects))
    _say(*(f"{file}:{model.metadata.name}: missing: {what}" for what in rendering.missing))
    return MISSING if rendering.missing else 0


def _renderer(configuration_file: Path | None) -> Renderer:
    configuration = read_configuration(configuration_file)
    return Renderer(table=configured_table(configuration), configuration=configuration, templates=Templates())


def _model(file: str, namespace: str | None) -> SpeculativeModel | list[str]:
    """The model of a file, or what is wrong with it."""
    documents = [document for document in read_documents(file) if document.content.get("kind") == "SpeculativeModel"]
    if len(documents) != 1:
        raise CommandLineError(f"{file}: holds {len(documents)} SpeculativeModels: give a file with one")
    document = documents[0]
    findings = check_document(document.content)
    if findings:
        return [f"{file}:{document.name}: {found.path}: {found.message}" for found in findings]
    try:
        model = parse({**as_stored(document.content), "status": {}})
    except ValidationError as error:
        return [f"{file}:{document.name}: {_place(e['loc'])}: {e['msg']}" for e in error.errors()]
    return _in_namespace(model, document, namespace)


def _place(location: tuple[int | str, ...]) -> str:
    return ".".join(str(part) for part in location)


def _in_namespace(model: SpeculativeModel, document: Document, namespace: str | None) -> SpeculativeModel:
    named = document.content["metadata"].get("namespace")
    if namespace is None or named == namespace:
        return model
    if named is not None:
        raise CommandLineError(
            f"{document.file}:{document.name}: metadata.namespace is {named}, --namespace is {namespace}: leave one out"
        )
    return model.model_copy(update={"metadata": model.metadata.model_copy(update={"namespace": namespace})})


def _say(*lines: str) -> None:
    sys.stderr.writelines(f"{line}\n" for line in lines)

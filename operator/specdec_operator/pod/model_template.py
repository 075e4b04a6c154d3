"""One model of the model repository: the image's template, filled strictly and compared with the plan."""

import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from specdec_operator.pod.errors import InvalidInput, ProgramFailure
from specdec_operator.pod.inputs import ModelTemplate
from specdec_operator.pod.model_config import (
    fill,
    from_json,
    get_field,
    inputs,
    parameters,
    set_field,
    set_parameter,
    variables,
)
from specdec_operator.pod.paths import inside
from specdec_operator.pod.textproto import Message, TextProtoError, parse, print_message

CONFIG_NAME = "config.pbtxt"
REVISION_PARAMETER = "specdec_revision"


def assemble_model(template: ModelTemplate, directory: Path, spellings: Mapping[str, str] | None = None) -> str:
    """Write one model's directory and read its configuration back.

    Args:
        template: the plan.
        directory: where it is written; must not exist.
        spellings: what the placeholders of the template's probes stand for.

    Returns:
        The digest of the template directory in the image; empty without one.

    Raises:
        ProgramFailure: the template and the plan don't fit.
    """
    source = _template_directory(template)
    if source is not None:
        shutil.copytree(source, directory, ignore=shutil.ignore_patterns("__pycache__"))
    (directory / "1").mkdir(parents=True, exist_ok=True)
    for path, text in template.files.items():
        _write(inside(directory, path), _spelled(text, spellings))
    config = _plan_config(template, directory / CONFIG_NAME)
    _write(directory / CONFIG_NAME, print_message(config))
    _compare(template, directory / CONFIG_NAME, config)
    return tree_digest(source) if source is not None else ""


def add_revision(config: Path, revision: str) -> None:
    """Add the parameter that tells which revision a served model is of.

    Raises:
        ProgramFailure: AssemblyMismatch, the configuration doesn't read back.
    """
    message = set_parameter(parse(config.read_text(encoding="utf-8")), REVISION_PARAMETER, revision)
    _write(config, print_message(message))
    if parameters(parse(config.read_text(encoding="utf-8"))).get(REVISION_PARAMETER) != revision:
        raise ProgramFailure("AssemblyMismatch", f"{config}: {REVISION_PARAMETER} doesn't read back as {revision!r}")


def tree_digest(directory: Path) -> str:
    """Hash of relative paths and contents of all files of a directory."""
    digest = hashlib.sha256()
    for path in sorted(_files(directory), key=lambda path: path.relative_to(directory).as_posix()):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{path.relative_to(directory).as_posix()}\0{content}\n".encode())
    return digest.hexdigest()


def _template_directory(template: ModelTemplate) -> Path | None:
    for candidate in template.candidates:
        if (Path(candidate) / CONFIG_NAME).is_file():
            return Path(candidate)
    if template.candidates:
        raise ProgramFailure(
            "TemplateNotFound",
            f"model {template.name}: the image holds no {CONFIG_NAME} in {', '.join(template.candidates)}; "
            "declare the release that the image really is, in spec.runtime.release",
        )
    return None


def _spelled(text: str, spellings: Mapping[str, str] | None) -> str:
    for name, spelling in (spellings or {}).items():
        text = text.replace(f"${{{name}}}", spelling)
    return text


def _plan_config(template: ModelTemplate, config: Path) -> Message:
    try:
        message = parse(config.read_text(encoding="utf-8")) if config.is_file() else Message()
        message = set_field(message, "name", template.name)
        for path, value in template.fields.items():
            message = set_field(message, path, value)
        _check_variables(template, message)
        message = fill(message, {**template.optional_values, **template.values})
        for key, text in template.parameters.items():
            message = set_parameter(message, key, text)
    except TextProtoError as error:
        raise ProgramFailure("TemplateUnreadable", f"model {template.name}: {CONFIG_NAME}: {error}") from error
    return message


def _check_variables(template: ModelTemplate, message: Message) -> None:
    found = variables(message)
    given = set(template.values) | set(template.optional_values)
    if overlap := sorted(given & set(template.unset)):
        raise InvalidInput(f"model {template.name}: {', '.join(overlap)} can't have a value and be unset")
    if unknown := sorted((found.fields | found.texts) - given - set(template.unset)):
        raise _variable_failure(
            template,
            "UnknownTemplateVariable",
            unknown,
            "which the plan doesn't know: this release needs a newer operator",
        )
    if unused := sorted(set(template.values) - found.fields - found.texts):
        raise _variable_failure(
            template, "UnusedTemplateVariable", unused, "isn't asked for by the template: the value would be lost"
        )
    if unset := sorted(found.fields & set(template.unset)):
        raise _variable_failure(template, "UnsetProtoField", unset, "stands for a proto field, which needs a value")


def _variable_failure(template: ModelTemplate, reason: str, names: list[str], what: str) -> ProgramFailure:
    listed = ", ".join(f"${{{name}}}" for name in names)
    return ProgramFailure(reason, f"model {template.name}, {CONFIG_NAME}: {listed} {what}")


def _compare(template: ModelTemplate, config: Path, planned: Message) -> None:
    try:
        read = parse(config.read_text(encoding="utf-8"))
    except TextProtoError as error:
        raise ProgramFailure("AssemblyMismatch", f"{config} doesn't read back: {error}") from error
    if read != planned:
        raise ProgramFailure("AssemblyMismatch", f"{config} doesn't read back as it was planned")
    for what, wanted, found in _expectations(template, read):
        if wanted != found:
            raise ProgramFailure("AssemblyMismatch", f"{config}: {what} must be {wanted!r}, it is {found!r}")


def _expectations(template: ModelTemplate, read: Message) -> Iterator[tuple[str, Any, Any]]:
    yield "name", template.name, get_field(read, "name")
    for path, value in template.fields.items():
        yield path, from_json(path.rpartition(".")[2], value), get_field(read, path)
    present = parameters(read)
    for key, text in {**template.parameters, **template.expected_parameters}.items():
        yield f"parameter {key}", text, present.get(key)
    declared = inputs(read)
    for name, datatype in template.expected_inputs.items():
        yield f"input {name}", datatype, declared.get(name)


def _files(directory: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(directory):
        folders[:] = [name for name in folders if name != "__pycache__"]
        yield from (Path(parent) / name for name in names)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # a template's file may have been copied read-only, and a link must not be written through
    path.unlink(missing_ok=True)
    path.write_text(text, encoding="utf-8")

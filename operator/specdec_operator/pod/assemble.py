"""Assemble the model repository that Triton loads, from the image's own templates.

A dry run is the same program with a scratch directory as its output.
"""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from specdec_operator.pod.errors import InvalidInput, ProgramFailure
from specdec_operator.pod.inputs import AssembleInput
from specdec_operator.pod.model_template import CONFIG_NAME, add_revision, assemble_model, tree_digest
from specdec_operator.pod.paths import inside
from specdec_operator.pod.program import run
from specdec_operator.pod.spelling import probe_spelling


def assemble(given: AssembleInput) -> dict[str, Any]:
    """Write the model repository.

    Returns:
        `digest` of the repository without its revision, `templates`: the digest of each model's template, and `notes`:
        spellings that the image does not confirm.

    Raises:
        ProgramFailure: a template and the plan don't fit, or the digest isn't the expected one.
    """
    output = Path(given.output)
    _check_names(given)
    spellings = {probe.name: probe_spelling(probe) for template in given.models for probe in template.probes}
    notes = [spelling.note for spelling in spellings.values() if spelling.note]
    for note in notes:
        print(note, file=sys.stderr)
    words = {name: spelling.text for name, spelling in spellings.items()}
    with _writable(output):
        _empty(output)
        templates = {
            template.name: assemble_model(template, inside(output, template.name), words) for template in given.models
        }
        digest = tree_digest(output)
        if given.expected_digest not in ("", digest):
            raise ProgramFailure(
                "AssemblyChanged",
                f"the model repository has the digest {digest}, prepared was {given.expected_digest}: the image behind "
                "this tag has changed; pin spec.runtime.image by digest, or touch specdec.dev/restart to prepare anew",
            )
        if given.revision:
            add_revision(output / given.revision_model / CONFIG_NAME, given.revision)
    return {"digest": digest, "templates": templates, "notes": notes}


def _check_names(given: AssembleInput) -> None:
    names = [template.name for template in given.models]
    if len(set(names)) != len(names):
        raise InvalidInput(f"models must have different names, they are {', '.join(names)}")
    if given.revision and given.revision_model not in names:
        raise InvalidInput(f"revisionModel {given.revision_model!r} is none of the models {', '.join(names)}")
    if any("/" in name for name in names):
        raise InvalidInput(f"a model's name must hold no slash: {', '.join(names)}")


def _empty(output: Path) -> None:
    output.mkdir(parents=True, exist_ok=True)
    for entry in output.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


@contextmanager
def _writable(output: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ProgramFailure(
            "OutputNotWritable",
            f"the model repository {output} can't be written: {error}; check the volume and its size",
        ) from error


if __name__ == "__main__":
    sys.exit(run(AssembleInput, assemble))

"""The input file that a program's command line names."""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from specdec_operator.pod.document import Document
from specdec_operator.pod.errors import InvalidInput

InputType = TypeVar("InputType", bound=Document)


def read_input(kind: type[InputType], arguments: Sequence[str]) -> InputType:
    """The input that the command line names.

    Raises:
        InvalidInput: there is none, or it isn't what the program reads.
    """
    if len(arguments) != 1:
        raise InvalidInput(f"give one argument, the path of the input file; got {len(arguments)}")
    try:
        text = Path(arguments[0]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"the input file {arguments[0]} can't be read: {error}") from error
    return kind.from_json(text)

"""Rules that span fields: each is a CEL expression for the API server and its twin in Python.

The API server refuses an object by the expression; `specdec validate` refuses the same object, with the same
message at the same field, by the twin. Both are held together by shared test vectors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One rule of a model.

    Attributes:
        expression: CEL over `self`, as `x-kubernetes-validations[].rule` has it.
        message: What is wrong and what to do, in one line.
        holds: The twin: takes the parsed model, tells whether the rule holds.
        field: The field that the message is about, relative to the model (`.draft`), or `""` for the model itself.
        reason: The API server's machine-readable class of the refusal.
    """

    expression: str
    message: str
    holds: Callable[[Any], bool]
    field: str = ""
    reason: Literal["FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired"] = "FieldValueInvalid"

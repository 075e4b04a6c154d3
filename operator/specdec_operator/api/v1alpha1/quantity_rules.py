"""Bounds of quantities. Kubernetes takes smaller and larger ones, but no container starts with them, and no volume."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from specdec_operator.api.quantities import byte_count
from specdec_operator.api.rules import Rule

if TYPE_CHECKING:
    from collections.abc import Callable

MOST: Final = "8Ei"
"""Quantities are kept as 64-bit numbers: what is larger is stored as the largest of them."""


def bounded(field: str, name: str, *, least: str = "0") -> Rule:
    """A rule that holds a quantity between bounds.

    Args:
        field: Its name in CEL.
        name: Its name in Python.
        least: The smallest quantity that is taken.
    """
    value = f"self.{field}"
    number = f"{value} >= {byte_count(least)}"
    text = f"quantity({value}).compareTo(quantity('{least}')) >= 0 && quantity({value}).isLessThan(quantity('{MOST}'))"
    bounds = f"at least {least} and less than {MOST}; a number without a suffix counts bytes"
    return Rule(
        expression=f"!has({value}) || (type({value}) == int ? {number} : !isQuantity({value}) || ({text}))",
        message=f"{field} must be {bounds if least != '0' else f'less than {MOST}'}",
        holds=_holds(name, byte_count(least)),
        field=f".{field}",
    )


def _holds(name: str, least: int) -> Callable[[Any], bool]:
    def holds(part: Any) -> bool:
        value = getattr(part, name)
        if value is None:
            return True
        try:
            return least <= byte_count(str(value)) < byte_count(MOST)
        except ValueError:  # its pattern says so
            return True

    return holds

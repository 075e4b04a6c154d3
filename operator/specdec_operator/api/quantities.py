"""Kubernetes quantities, written as the API server itself would write them.

The API server stores `1000m` as `1` and `1024Mi` as `1Gi`; an object that was applied with another spelling would look
changed at every comparison.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal

_BINARY = {suffix: 1024**power for power, suffix in enumerate(("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"))}
_DECIMAL = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    **{suffix: Decimal(1000**power) for power, suffix in enumerate(("", "k", "M", "G", "T", "P", "E"))},
}
# Nothing is finer than a billionth.
_BILLIONTHS = {suffix: int(factor / _DECIMAL["n"]) for suffix, factor in _DECIMAL.items()}
_MEBIBYTE = 1024**2
_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]+)?)([a-zA-Z]*)")


def canonical(quantity: str) -> str:
    """The spelling of a quantity that the API server gives back.

    Raises:
        ValueError: It is no quantity.
    """
    value, suffix = _read(quantity)
    # The API server falls back to decimal suffixes where binary ones would lose digits or confuse; what it wrote
    # without a suffix it reads back as decimal.
    if suffix.endswith("i") and value >= 1024 and value % 1024 == 0:
        return _binary(int(value))
    return _decimal(value)


def amount(quantity: str) -> Decimal:
    """A quantity as a number: cores, bytes or pieces.

    Raises:
        ValueError: It is no quantity.
    """
    return _read(quantity)[0]


def byte_count(quantity: str) -> int:
    """A quantity of memory in bytes, rounded up.

    Raises:
        ValueError: It is no quantity.
    """
    return math.ceil(_read(quantity)[0])


def memory(number_of_bytes: int) -> str:
    """Bytes as a quantity, rounded up to mebibytes."""
    mebibytes = -(-number_of_bytes // _MEBIBYTE)
    return _binary(mebibytes * _MEBIBYTE) if mebibytes else "0"


def lesser(one: str, other: str) -> str:
    """The smaller of two quantities, as it is written.

    Raises:
        ValueError: One is no quantity.
    """
    return min(one, other, key=lambda quantity: _read(quantity)[0])


def _read(quantity: str) -> tuple[Decimal, str]:
    parts = _QUANTITY.fullmatch(quantity)
    factor = _BINARY.get(parts[2], _DECIMAL.get(parts[2])) if parts else None
    if parts is None or factor is None:
        raise ValueError(f"{quantity!r} is no quantity: write it as in 4, 500m or 16Gi")
    return Decimal(parts[1]) * factor, parts[2]


def _binary(value: int) -> str:
    suffix, factor = max(((s, f) for s, f in _BINARY.items() if value % f == 0), key=lambda pair: pair[1])
    return f"{value // factor}{suffix}"


def _decimal(value: Decimal) -> str:
    if not value:
        return "0"
    # The API server rounds up.
    billionths = math.ceil(value / _DECIMAL["n"])
    suffix, unit = max(((s, u) for s, u in _BILLIONTHS.items() if billionths % u == 0), key=lambda pair: pair[1])
    return f"{billionths // unit}{suffix}"

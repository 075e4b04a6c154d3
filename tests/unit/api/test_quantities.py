from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes.utils.quantity import parse_quantity

from specdec_operator.api.quantities import byte_count, canonical, lesser, memory

if TYPE_CHECKING:
    from decimal import Decimal

SUFFIXES = ("", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
QUANTITIES = st.tuples(
    st.integers(0, 10**6), st.sampled_from(["", ".5", ".25", ".125", ".1"]), st.sampled_from(SUFFIXES)
).map(lambda parts: f"{parts[0]}{parts[1]}{parts[2]}")


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("1000m", "1"),
        ("0.5", "500m"),
        ("1.5", "1500m"),
        ("1000", "1k"),
        ("1024", "1024"),
        ("1024Mi", "1Gi"),
        ("1024Gi", "1Ti"),
        ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"),
        ("113656.25Ki", "116384k"),
        ("0.1Gi", "107374182400m"),
        ("1Ki", "1Ki"),
        ("0Gi", "0"),
        ("200m", "200m"),
        ("1000000k", "1G"),
    ],
)
def test_a_quantity_is_spelt_as_the_api_server_spells_it(written: str, stored: str) -> None:
    assert canonical(written) == stored


@given(QUANTITIES)
def test_another_spelling_is_the_same_quantity(written: str) -> None:
    assert _parsed(canonical(written)) == _parsed(written)


@given(QUANTITIES)
def test_a_canonical_quantity_stays(written: str) -> None:
    assert canonical(canonical(written)) == canonical(written)


@given(st.integers(0, 2**50))
def test_bytes_are_rounded_up_to_mebibytes(number: int) -> None:
    assert number <= byte_count(memory(number)) < number + 1024**2


def test_a_fraction_of_a_byte_is_a_byte() -> None:
    assert byte_count("1500m") == 2


@pytest.mark.parametrize("text", ["", "4 Gi", "Gi", "-1", "1e3", "1ki"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no quantity"):
        canonical(text)


def _parsed(quantity: str) -> Decimal:
    parsed: Decimal = parse_quantity(quantity)  # type: ignore[no-untyped-call]
    return parsed


@pytest.mark.parametrize(("one", "other", "found"), [("100m", "2", "100m"), ("1", "20m", "20m"), ("1Gi", "1G", "1G")])
def test_the_lesser_of_two_quantities_keeps_its_spelling(one: str, other: str, found: str) -> None:
    assert lesser(one, other) == lesser(other, one) == found

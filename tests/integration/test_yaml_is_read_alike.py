"""A scalar without quotes means the same to the API server, which reads YAML as kubectl does, and to `specdec`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import yaml

from specdec_operator.api.documents import read_one
from specdec_operator.api.scalar_text import meaning

if TYPE_CHECKING:
    from testbed.cluster import Cluster

pytestmark = pytest.mark.controlplane

MODEL = """\
apiVersion: specdec.dev/v1alpha1
kind: SpeculativeModel
metadata: {name: scalars}
spec:
  values:
"""
SCALARS = (  # noqa: SIM905  a list would be longer
    "25.10 0012345 -017 +017 0o17 0O17 0089 08 0x1F 0X1f 0b101 0B101 1_000 0_7 1e5 1E5 12345e6 1e+5 1.5e-3 .5 5. . .. +"
    " +5 -5 5e 0x 0xg 1.2.3 12:30 1:30:00 2026-11-21 2026-11-21T10:00:00Z 9223372036854775807 18446744073709551615"
    " 18446744073709551616 1e400 yes Yes YES yEs no on On off y Y n N true True TRUE tRue false t f null Null NULL nUll"
    " None none ~ 1__0 0x_1 _1 -.5 +.5 0 00 -0 1e0"
).split()


@pytest.fixture(scope="module")
def by_kubectl(served: Cluster) -> list[object]:
    """What kubectl reads, without asking the API server whether it is valid."""
    text = MODEL + "".join(f"  - {scalar}\n" for scalar in SCALARS)
    arguments = ("--dry-run=client", "--validate=false", "--output=json", "--filename=-")
    values: list[object] = json.loads(served.kubectl("create", *arguments, stdin=text))["spec"]["values"]
    return values


def float_or_zero(value: object) -> float:
    return abs(float(value)) if isinstance(value, int | float) else 0.0


def read(text: str) -> object:
    document = read_one(text)
    return document.content if document else None


@pytest.mark.parametrize("scalar", SCALARS)
def test_a_scalar_means_the_same(by_kubectl: list[object], scalar: str) -> None:
    value = by_kubectl[SCALARS.index(scalar)]
    own = read(f"[{scalar}]")

    assert isinstance(own, list)
    assert (isinstance(own[0], str), isinstance(own[0], bool)) == (isinstance(value, str), isinstance(value, bool))
    assert own == [pytest.approx(value) if isinstance(value, int) and value > 2**53 else value]


def test_keys_become_the_same_text(served: Cluster) -> None:
    # kubectl takes no key of 64 unsigned bits; large fractions are nobody's keys.
    keys = [scalar for scalar in SCALARS if meaning(scalar) is not None and float_or_zero(meaning(scalar)) < 10**6]
    text = MODEL + "".join(f"    k{index}: {{? {key} : a}}\n" for index, key in enumerate(keys))
    arguments = ("--dry-run=client", "--validate=false", "--output=json", "--filename=-")
    by_kubectl = json.loads(served.kubectl("create", *arguments, stdin=text))["spec"]["values"]

    assert read(text.partition("values:")[2]) == by_kubectl


def test_the_scalars_are_not_all_those_of_pyyaml() -> None:
    differ = [scalar for scalar in SCALARS if [yaml.safe_load(scalar)] != read(f"[{scalar}]")]

    assert len(differ) > 10

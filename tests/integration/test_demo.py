from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest

from testbed.cluster import SilentProgress
from testbed.demo.__main__ import EXAMPLES
from testbed.demo.screen import Screen
from testbed.demo.unproven import show_unproven

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.controlplane


@pytest.fixture(scope="module")
def shown() -> Sequence[str]:
    """What the demo says on a machine that can't carry a real node."""
    output = io.StringIO()
    show_unproven(
        EXAMPLES, reason="a real node needs root", keep=False, screen=Screen(output), progress=SilentProgress()
    )
    return output.getvalue().splitlines()


def test_without_root_the_demo_says_first_that_pods_are_played(shown: Sequence[str]) -> None:
    assert shown[0] == "No real node: a real node needs root."
    assert "played" in shown[1]


def test_without_root_every_example_ends_prepared_but_unproven(shown: Sequence[str]) -> None:
    names = {file.stem for file in EXAMPLES.glob("*.yaml")}
    unproven = [line for line in shown if "ProofUnreachable" in line]
    assert len(unproven) >= len(names)
    assert "Served=Unknown: not proven: needs root or KUBECONFIG" in shown


def test_without_root_the_demo_shows_what_the_operator_made(shown: Sequence[str]) -> None:
    assert any(line.startswith("  SpeculativeModel draft-target") for line in shown)
    assert any("declared GPUs" in line for line in shown)

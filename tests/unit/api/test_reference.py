from __future__ import annotations

import re

from specdec_operator.api.crd import definition
from specdec_operator.api.reference import reference
from specdec_operator.api.v1alpha1.kinds import KINDS

TEXT = reference(KINDS)


def test_every_type_has_one_heading() -> None:
    headings = re.findall(r"^### (\w+)$", TEXT, re.MULTILINE)

    assert len(headings) == len(set(headings))


def test_every_link_has_its_heading() -> None:
    headings = {heading.lower() for heading in re.findall(r"^### (\w+)$", TEXT, re.MULTILINE)}

    assert set(re.findall(r"\(#(\w+)\)", TEXT)) <= headings


def test_every_top_field_of_every_kind_is_there() -> None:
    properties = [definition(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"] for kind in KINDS]
    names = {name for schema in properties for part in ("spec", "status") for name in schema[part]["properties"]}

    assert {name for name in names if f"| `{name}` |" not in TEXT} == set()


def test_a_type_tells_every_place_where_it_stands() -> None:
    assert "`spec.target.source`, `spec.draft.source`" in TEXT


def test_bounds_defaults_and_words_are_told() -> None:
    row = next(line for line in TEXT.splitlines() if line.startswith("| `maxQueueSize`"))

    assert "| integer | 0 to 1000000 | `0` |" in row

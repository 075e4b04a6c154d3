from __future__ import annotations

from typing import TYPE_CHECKING

from specdec_operator.api.broken_rules import broken_rules
from specdec_operator.api.findings import as_stored
from specdec_operator.api.model import ApiModel
from specdec_operator.api.tree import fields_of, model_in
from specdec_operator.api.v1alpha1.kinds import KINDS, SPECULATIVE_MODEL
from tests.vectors.api import vectors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import BaseModel

    from specdec_operator.api.rules import Rule

MODELS = {resource.kind: resource.model for resource in KINDS}


def rules_below(model: type[BaseModel]) -> Iterator[Rule]:
    if issubclass(model, ApiModel):
        yield from model.RULES
    for field in fields_of(model).values():
        inner = model_in(field.annotation)
        if inner is not None:
            yield from rules_below(inner)


def test_every_rule_is_broken_by_a_vector() -> None:
    broken = {
        rule.expression
        for vector in vectors()
        for rule, _ in broken_rules(MODELS[vector.document["kind"]], as_stored(vector.document), frozenset())
    }
    every = {rule.expression for model in MODELS.values() for rule in rules_below(model)}
    about_a_change = {expression for expression in every if "oldSelf" in expression}

    assert every - broken - about_a_change == set()


def test_a_rule_is_found_below_a_part_that_is_malformed() -> None:
    document = {"metadata": {"name": "a"}, "spec": {"speculation": {"method": "None"}, "storage": {}}}

    [(_, path)] = broken_rules(SPECULATIVE_MODEL.model, document, frozenset({("spec", "target")}))

    assert path == "spec.storage"


def test_a_default_does_not_stand_in_for_a_spoilt_field() -> None:
    document = {"metadata": {"name": "a"}, "spec": {"speculation": {"method": "Eagle3"}, "draft": 3, "target": {}}}
    spoilt = frozenset({("spec", "draft"), ("spec", "target", "source")})

    assert list(broken_rules(SPECULATIVE_MODEL.model, document, spoilt)) == []

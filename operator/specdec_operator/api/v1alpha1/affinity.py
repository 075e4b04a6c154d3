"""Kubernetes' affinity, as Kubernetes checks it: what is wrong in it is said before anything is downloaded."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_serializer

from specdec_operator.api.model import ApiModel
from specdec_operator.api.rules import Rule
from specdec_operator.api.v1alpha1 import patterns
from specdec_operator.api.v1alpha1.scalars import LabelKey, LabelValue, ObjectName

Weight = Annotated[int, Field(ge=1, le=100)]
Namespace = Annotated[str, Field(min_length=1, max_length=63, pattern=patterns.DNS_LABEL.expression)]
Values = Annotated[list[LabelValue], Field(max_length=32)]


class KubernetesPart(ApiModel):
    """A part of Kubernetes' own API: it is written out as it was given, without defaults."""

    @model_serializer
    def _as_given(self) -> dict[str, Any]:
        fields = type(self).model_fields
        return {
            field.alias or name: getattr(self, name)
            for name, field in fields.items()
            if name in self.model_fields_set and getattr(self, name) is not None
        }


def _of_operator(*, several: str, none: str) -> tuple[Rule, Rule]:
    """The rules of a requirement: which operators compare with values."""
    return (
        Rule(
            expression=f"!(self.operator in {_listed(several)}) || (has(self.values) && size(self.values) > 0)",
            message=f"values must be given with the operators {several}",
            holds=lambda self: self.operator not in several.split(", ") or bool(self.values),
            field=".values",
            reason="FieldValueRequired",
        ),
        Rule(
            expression=f"!(self.operator in {_listed(none)}) || !has(self.values) || size(self.values) == 0",
            message=f"the operators {none} take no values: remove them",
            holds=lambda self: self.operator not in none.split(", ") or not self.values,
            field=".values",
            reason="FieldValueForbidden",
        ),
    )


def _listed(words: str) -> str:
    return str(words.split(", "))


class NodeRequirement(KubernetesPart):
    """What a label of a node must be."""

    key: LabelKey
    """The label's key."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    """How its value is compared."""
    values: Values = []
    """What it is compared with: a whole number for Gt and Lt."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        *_of_operator(several="In, NotIn", none="Exists, DoesNotExist"),
        Rule(
            expression=(
                "!(self.operator in ['Gt', 'Lt']) || "
                "(has(self.values) && size(self.values) == 1 && self.values[0].matches('^[0-9]{1,18}$'))"
            ),
            message="the operators Gt and Lt take one whole number, in quotes",
            holds=lambda self: (
                self.operator not in ("Gt", "Lt") or (len(self.values) == 1 and _is_whole(self.values[0]))
            ),
            field=".values",
        ),
    )


def _is_whole(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 18


class NodeFieldRequirement(KubernetesPart):
    """What the name of a node must be."""

    key: Literal["metadata.name"]
    """The only field that Kubernetes compares."""
    operator: Literal["In", "NotIn"]
    """How it is compared."""
    values: Annotated[list[ObjectName], Field(min_length=1, max_length=1)]
    """One name."""


class NodeTerm(KubernetesPart):
    """Nodes of which everything holds; none if it is empty."""

    match_expressions: Annotated[list[NodeRequirement], Field(max_length=16)] = []
    """Of their labels."""
    match_fields: Annotated[list[NodeFieldRequirement], Field(max_length=16)] = []
    """Of their names."""


class NodeSelector(KubernetesPart):
    """Nodes of which one of the terms holds."""

    node_selector_terms: Annotated[list[NodeTerm], Field(min_length=1, max_length=16)]
    """The terms."""


class PreferredNodes(KubernetesPart):
    """Nodes that are better than others."""

    weight: Weight
    """How much better, from 1 to 100."""
    preference: NodeTerm
    """Which nodes."""


class NodeAffinity(KubernetesPart):
    """Which nodes the pods want."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    """Nodes that they need."""
    preferred_during_scheduling_ignored_during_execution: Annotated[list[PreferredNodes], Field(max_length=16)] = []
    """Nodes that they prefer."""


class LabelRequirement(KubernetesPart):
    """What a label must be."""

    key: LabelKey
    """The label's key."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    """How its value is compared."""
    values: Values = []
    """What it is compared with."""

    RULES: ClassVar[tuple[Rule, ...]] = _of_operator(several="In, NotIn", none="Exists, DoesNotExist")


class LabelSelector(KubernetesPart):
    """Objects of whose labels everything holds; all of them if it is empty."""

    match_labels: Annotated[dict[LabelKey, LabelValue], Field(max_length=16)] = {}
    """Labels and their values."""
    match_expressions: Annotated[list[LabelRequirement], Field(max_length=16)] = []
    """More that must hold."""


class PodTerm(KubernetesPart):
    """Pods that are near: on nodes with the same value of a label."""

    topology_key: LabelKey
    """The nodes' label, such as `kubernetes.io/hostname`."""
    label_selector: LabelSelector | None = None
    """Which pods; none if left out."""
    namespaces: Annotated[list[Namespace], Field(max_length=16)] = []
    """Their namespaces; the model's own if neither these nor namespaceSelector are given."""
    namespace_selector: LabelSelector | None = None
    """Their namespaces, by labels."""
    match_label_keys: Annotated[list[LabelKey], Field(max_length=8)] = []
    """Labels that must be equal to the pod's own."""
    mismatch_label_keys: Annotated[list[LabelKey], Field(max_length=8)] = []
    """Labels that must differ from the pod's own."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            expression="has(self.labelSelector) || (!has(self.matchLabelKeys) && !has(self.mismatchLabelKeys))",
            message="matchLabelKeys and mismatchLabelKeys go with a labelSelector: give it, or remove them",
            holds=lambda self: (
                self.label_selector is not None or not (self.match_label_keys + self.mismatch_label_keys)
            ),
            field=".labelSelector",
            reason="FieldValueRequired",
        ),
        Rule(
            expression=(
                "!has(self.matchLabelKeys) || !has(self.mismatchLabelKeys) || "
                "!self.matchLabelKeys.exists(key, key in self.mismatchLabelKeys)"
            ),
            message="a label can't be both in matchLabelKeys and in mismatchLabelKeys",
            holds=lambda self: not set(self.match_label_keys) & set(self.mismatch_label_keys),
            field=".matchLabelKeys",
        ),
        Rule(
            expression=(
                "!has(self.labelSelector) || [has(self.matchLabelKeys) ? self.matchLabelKeys : [], "
                "has(self.mismatchLabelKeys) ? self.mismatchLabelKeys : []].all(keys, "
                "(!has(self.labelSelector.matchLabels) || !keys.exists(key, key in self.labelSelector.matchLabels)) && "
                "(!has(self.labelSelector.matchExpressions) || "
                "!self.labelSelector.matchExpressions.exists(each, each.key in keys)))"
            ),
            message="a label of matchLabelKeys or mismatchLabelKeys can't be in labelSelector too",
            holds=lambda self: (
                not (_selected(self.label_selector) & {*self.match_label_keys, *self.mismatch_label_keys})
            ),
            field=".labelSelector",
        ),
    )


def _selected(selector: LabelSelector | None) -> set[str]:
    if selector is None:
        return set()
    return {*selector.match_labels, *(each.key for each in selector.match_expressions)}


class PreferredPods(KubernetesPart):
    """Pods that are good or bad neighbours."""

    weight: Weight
    """How much, from 1 to 100."""
    pod_affinity_term: PodTerm
    """Which pods."""


class PodAffinity(KubernetesPart):
    """Which neighbours the pods want, or don't."""

    required_during_scheduling_ignored_during_execution: Annotated[list[PodTerm], Field(max_length=16)] = []
    """What must hold."""
    preferred_during_scheduling_ignored_during_execution: Annotated[list[PreferredPods], Field(max_length=16)] = []
    """What is preferred."""


class Affinity(ApiModel):
    """Which nodes and neighbours the pods want, as in Kubernetes."""

    node_affinity: NodeAffinity | None = None
    """Kubernetes nodeAffinity."""
    pod_affinity: PodAffinity | None = None
    """Kubernetes podAffinity."""
    pod_anti_affinity: PodAffinity | None = None
    """Kubernetes podAntiAffinity."""

"""Where downloaded models and built engines are kept."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from specdec_operator.api.model import ApiModel
from specdec_operator.api.rules import Rule
from specdec_operator.api.v1alpha1.quantity_rules import bounded
from specdec_operator.api.v1alpha1.scalars import Bytes, ObjectName


class StorageClaim(ApiModel):
    """A claim that the operator makes if it is missing, and never deletes."""

    claim_name: ObjectName = "specdec-store"
    """The claim's name; every model of the namespace that names it shares its models and engines."""
    size: Bytes
    """The volume's size."""
    storage_class_name: ObjectName | None = None
    """The storage class; the cluster's default if left out."""
    access_modes: Annotated[
        list[Literal["ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod"]], Field(min_length=1, max_length=3)
    ] = ["ReadWriteOnce"]
    """The access modes asked for."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        bounded("size", "size", least="1Mi"),
        Rule(
            expression="!('ReadWriteOncePod' in self.accessModes) || size(self.accessModes) == 1",
            message="ReadWriteOncePod goes with no other access mode: give it alone, or remove it",
            holds=lambda self: "ReadWriteOncePod" not in self.access_modes or len(self.access_modes) == 1,
            field=".accessModes",
        ),
    )


class Storage(ApiModel):
    """The store: the volume claim that holds downloaded models and built engines. Exactly one member."""

    claim_name: ObjectName | None = None
    """An existing claim."""
    claim: StorageClaim | None = None
    """A claim that the operator makes if it is missing."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            expression="has(self.claimName) != has(self.claim)",
            message="give exactly one of claimName (an existing claim) and claim (one to be made)",
            holds=lambda self: (self.claim_name is None) != (self.claim is None),
        ),
    )

"""Bounded strings and numbers that several parts of the API share."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from specdec_operator.api.v1alpha1 import patterns


def _quantity_text(value: Any) -> Any:
    """Take a whole number of 64 bits for a quantity, as Kubernetes does with `cpu: 4`."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    return str(value) if whole and abs(value) < 2**63 else value


def distinct(values: list[Any]) -> list[Any]:
    """Refuse a second entry of the same value, or of the same name, as the API server does.

    Raises:
        PydanticCustomError: `duplicate`.
    """
    identities = [getattr(value, "name", value) for value in values]
    for index, identity in enumerate(identities):
        if identity in identities[:index]:
            raise PydanticCustomError("duplicate", "duplicate value {value}: each may occur once", {"value": identity})
    return values


ObjectName = Annotated[str, Field(min_length=1, max_length=253, pattern=patterns.DNS_SUBDOMAIN.expression)]
Quantity = Annotated[
    str,
    Field(
        min_length=1,
        max_length=32,
        pattern=patterns.QUANTITY.expression,
        json_schema_extra={"x-kubernetes-int-or-string": True},
    ),
    BeforeValidator(_quantity_text),
]
Bytes = Annotated[
    str,
    Field(
        min_length=1,
        max_length=32,
        pattern=patterns.BYTES.expression,
        json_schema_extra={"x-kubernetes-int-or-string": True},
    ),
    BeforeValidator(_quantity_text),
]
RelativePath = Annotated[str, Field(min_length=1, max_length=512, pattern=patterns.RELATIVE_PATH.expression)]
RelativePathOrRoot = Annotated[str, Field(max_length=512, pattern=patterns.RELATIVE_PATH_OR_ROOT.expression)]
ImageReference = Annotated[str, Field(min_length=1, max_length=512, pattern=patterns.IMAGE_REFERENCE.expression)]
Driver = Annotated[str, Field(max_length=19, pattern=patterns.DRIVER.expression)]
LabelKey = Annotated[str, Field(min_length=1, max_length=253, pattern=patterns.LABEL_KEY.expression)]
LabelValue = Annotated[str, Field(max_length=63, pattern=patterns.LABEL_VALUE.expression)]
AnnotationValue = Annotated[str, Field(max_length=4096)]
ResourceName = Annotated[str, Field(min_length=3, max_length=244, pattern=patterns.RESOURCE_NAME.expression)]
DeviceIds = Annotated[
    list[Annotated[int, Field(ge=0, le=63)]],
    Field(min_length=1, max_length=64, json_schema_extra={"x-kubernetes-list-type": "set"}),
    AfterValidator(distinct),
]
Digest = Annotated[str, Field(max_length=64, pattern=patterns.HEX_DIGEST.expression)]

"""Bounded strings and numbers that several parts of the API share."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

DNS_LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
DNS_SUBDOMAIN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
RELATIVE_PATH = r"^[A-Za-z0-9_][A-Za-z0-9_.@+=-]*(/[A-Za-z0-9_][A-Za-z0-9_.@+=-]*)*$"
QUANTITY = r"^[0-9]+(\.[0-9]+)?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$"

ObjectName = Annotated[str, Field(min_length=1, max_length=253, pattern=DNS_SUBDOMAIN)]
Quantity = Annotated[str, Field(min_length=1, max_length=32, pattern=QUANTITY)]
RelativePath = Annotated[str, Field(min_length=1, max_length=512, pattern=RELATIVE_PATH)]
ImageReference = Annotated[str, Field(min_length=1, max_length=512, pattern=r"^[a-zA-Z0-9][a-zA-Z0-9._:/@-]*$")]
LabelKey = Annotated[
    str,
    Field(min_length=1, max_length=317, pattern=r"^([a-z0-9.-]+/)?[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$"),
]
LabelValue = Annotated[str, Field(max_length=63, pattern=r"^([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?$")]
AnnotationValue = Annotated[str, Field(max_length=4096)]
DeviceId = Annotated[int, Field(ge=0, le=63)]

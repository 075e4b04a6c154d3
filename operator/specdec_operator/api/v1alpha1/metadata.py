"""The part of Kubernetes' ObjectMeta that the operator reads."""

from __future__ import annotations

from pydantic import ConfigDict

from specdec_operator.api.model import ApiModel


class OwnerReference(ApiModel):
    """An owner of an object."""

    model_config = ConfigDict(extra="ignore")

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None


class ObjectMeta(ApiModel):
    """Name, namespace and identity of an object."""

    model_config = ConfigDict(extra="ignore")

    name: str
    namespace: str = "default"
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    owner_references: tuple[OwnerReference, ...] = ()

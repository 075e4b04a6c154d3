"""Volumes that hold models and engines: claims, and images as volumes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specdec_operator.api.v1alpha1.artifact_inputs import MountedModel
    from specdec_operator.resources.template import JsonObject


@dataclass(frozen=True, kw_only=True)
class Mounted:
    """Volumes of a pod and their places in a container."""

    volumes: tuple[JsonObject, ...]
    mounts: tuple[JsonObject, ...]


def mounted(places: Sequence[tuple[MountedModel, str]], *, prefix: str) -> Mounted:
    """Mount directories, read-only; what comes from one claim or image is one volume.

    Args:
        places: What is mounted, and at which path.
        prefix: Of the volumes' names, as in `models-0`.
    """
    origins = sorted({_origin(model) for model, _ in places})
    names = {origin: f"{prefix}-{index}" for index, origin in enumerate(origins)}
    by_origin = {_origin(model): model for model, _ in places}
    return Mounted(
        volumes=tuple({"name": names[origin], **_volume(by_origin[origin])} for origin in origins),
        mounts=tuple(mount(names[_origin(model)], model.sub_path, path) for model, path in places),
    )


def claim_volume(name: str, claim: str) -> JsonObject:
    """A claim as a volume."""
    return {"name": name, "persistentVolumeClaim": {"claimName": claim}}


def mount(name: str, sub_path: str, path: str) -> JsonObject:
    """A volume's place in a container, read-only.

    Args:
        sub_path: The directory inside the volume; all of it if empty.
    """
    place: JsonObject = {"name": name, "mountPath": path, "readOnly": True}
    return {**place, "subPath": sub_path} if sub_path else place


def _origin(model: MountedModel) -> tuple[str, str]:
    return ("claim", model.claim_name) if model.claim_name else ("image", model.image or "")


def _volume(model: MountedModel) -> JsonObject:
    if model.claim_name:
        return {"persistentVolumeClaim": {"claimName": model.claim_name}}
    return {"image": {"reference": model.image, "pullPolicy": model.image_pull_policy}}

"""The models of the demo as the API server has them, and what one line says of each. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

Json = dict[str, Any]


class Tone(Enum):
    """How a status is meant."""

    GOOD = "good"
    WAITING = "waiting"
    BAD = "bad"


@dataclass(frozen=True)
class Row:
    """What the live view says of a model.

    Attributes:
        name: the model's.
        status: the reason of its Ready condition.
        tone: how the status is meant.
        artifacts: made and needed, such as `3/5`.
        placement: GPUs, devices and MPI ranks; empty until they are known.
        short_placement: the same in fewer characters.
        ready: ready and wanted pods.
        seconds: since it was applied, until it served.
    """

    name: str
    status: str
    tone: Tone
    artifacts: str
    placement: str
    short_placement: str
    ready: str
    seconds: float


def row(model: Json, *, seconds: float) -> Row:
    """Return the line of a model."""
    status, ready = model.get("status", {}), condition(model, "Ready")
    artifacts = status.get("artifacts", [])
    made = sum(artifact["state"] == "Ready" for artifact in artifacts)
    return Row(
        name=model["metadata"]["name"],
        status=ready.get("reason", "Pending"),
        tone=_tone(model),
        artifacts=f"{made}/{len(artifacts)}" if artifacts else "",
        placement=placement(status.get("placement")),
        short_placement=short_placement(status.get("placement")),
        ready=f"{status.get('readyReplicas', 0)}/{model['spec'].get('replicas', 1)}",
        seconds=seconds,
    )


def condition(model: Json, kind: str) -> Json:
    """Return a condition; an empty one if it is not there."""
    found = [c for c in model.get("status", {}).get("conditions", []) if c["type"] == kind]
    return found[0] if found else {}


def is_current(model: Json) -> bool:
    """Whether the status speaks of the spec as it is."""
    observed: int = model.get("status", {}).get("observedGeneration", -1)
    return bool(observed == model["metadata"].get("generation"))


def serves(model: Json) -> bool:
    """Whether the operator has proven that it answers."""
    return is_current(model) and condition(model, "Ready").get("status") == "True"


def is_stalled(model: Json) -> bool:
    """Whether only a change by somebody can help."""
    return is_current(model) and condition(model, "Stalled").get("status") == "True"


def placement(placed: Json | None) -> str:
    """Say where a pair runs, such as `2 GPUs, draft 0 | target 1, ranks 1 | 2 of 3`."""
    if not placed:
        return ""
    models = sorted(placed.get("models", []), key=lambda model: str(model["role"]))
    devices = " | ".join(f"{model['role']} {_numbers(model['devices'])}" for model in models)
    ranks = " | ".join(_numbers(model["participantIds"]) for model in models if model.get("participantIds"))
    count = placed.get("gpusPerReplica", 0)
    parts = [f"{count} GPU{'s' if count != 1 else ''}", devices]
    if ranks:
        parts.append(f"ranks {ranks} of {placed['worldSize']}")
    return ", ".join(part for part in parts if part)


def short_placement(placed: Json | None) -> str:
    """Say the same without the roles: draft first, such as `2 GPUs 0|1, ranks 1|2`."""
    if not placed:
        return ""
    models = sorted(placed.get("models", []), key=lambda model: str(model["role"]))
    count = placed.get("gpusPerReplica", 0)
    text = f"{count} GPU{'s' if count != 1 else ''} {'|'.join(_numbers(model['devices']) for model in models)}"
    ranks = "|".join(_numbers(model["participantIds"]) for model in models if model.get("participantIds"))
    return f"{text}, ranks {ranks}" if ranks else text


def describe(model: Json) -> str:
    """Say all that a model's status says, for a failure's message."""
    conditions = model.get("status", {}).get("conditions", [])
    lines = [f"  {c['type']}={c['status']} {c['reason']}: {c.get('message', '')}" for c in conditions]
    return "\n".join(
        [f"{model['metadata']['name']}:", *(lines or ["  no condition yet: the operator has not seen it"])]
    )


def _numbers(values: list[int]) -> str:
    return ",".join(str(value) for value in values)


def _tone(model: Json) -> Tone:
    if serves(model):
        return Tone.GOOD
    return Tone.BAD if is_stalled(model) else Tone.WAITING

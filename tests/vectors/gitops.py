"""The states of gitops_states.yaml: objects as the operator left them, and what GitOps tools must say of each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from specdec_operator.api.yaml_text import read_yaml

JsonObject = dict[str, Any]
FILE = Path(__file__).parent / "gitops_states.yaml"
HEAD = """\
# Objects as the operator left them on a real API server, each state of the conditions once, and what must be said of
# each: kstatus by its own rules; flux with the expressions of gitops/flux/kustomizations.yaml; argocd with
# gitops/argocd/health.lua. Of the spec only suspend and a replicas of 0 are kept, of the messages only Ready's.
# Recorded by
#   python -m pytest -p tests.vectors.gitops_recorder tests/integration/test_operator_*.py
# which adds states that are not listed yet. Verdicts are written by hand: a new state comes with `?`.
"""


@dataclass(frozen=True)
class State:
    """An object, and what must be said of it.

    Attributes:
        document: apiVersion, kind, metadata, spec and status, cut to what tools look at.
    """

    document: JsonObject
    kstatus: str
    flux: str
    argocd: str

    @property
    def name(self) -> str:
        """A word for reports."""
        conditions = {c["type"]: c for c in self.document["status"]["conditions"]}
        ready = conditions["Ready"]
        motion = "".join(f"-{kind}" for kind in ("Reconciling", "Stalled") if kind in conditions)
        return f"{self.document['kind']}-{ready['status']}-{ready['reason']}{motion}"


def states(file: Path = FILE) -> list[State]:
    """Every recorded state."""
    listed = read_yaml(file.read_text(encoding="utf-8")) if file.exists() else None
    return [State(entry["object"], **entry["verdict"]) for entry in listed or []]


def cut(document: JsonObject) -> JsonObject:
    """What GitOps tools look at of a live object."""
    metadata = {
        key: document["metadata"][key] for key in ("generation", "deletionTimestamp") if key in document["metadata"]
    }
    spec = {
        key: value for key, value in document["spec"].items() if (key, value) in (("suspend", True), ("replicas", 0))
    }
    conditions = [_condition(each) for each in document["status"]["conditions"]]
    status = {"observedGeneration": document["status"]["observedGeneration"], "conditions": conditions}
    kind = {key: document[key] for key in ("apiVersion", "kind")}
    return {**kind, "metadata": metadata, "spec": spec, "status": status}


def _condition(condition: JsonObject) -> JsonObject:
    kept = ("type", "status", "reason", *(("message",) if condition["type"] == "Ready" else ()))
    return {key: condition[key] for key in kept if condition.get(key)}


def signature(document: JsonObject) -> tuple[object, ...]:
    """What makes two cut objects the same state: neither their generation nor their messages."""
    metadata, spec, status = document["metadata"], document["spec"], document["status"]
    said = tuple((c["type"], c["status"], c["reason"]) for c in status["conditions"])
    observed = status["observedGeneration"]
    seen = "never" if observed == -1 else str(observed == metadata["generation"])
    return (document["kind"], "deletionTimestamp" in metadata, *sorted(spec), seen, said)


def write(recorded: list[State], file: Path = FILE) -> None:
    """Write states in an order that does not depend on when they were seen."""
    listed = [
        {"verdict": {"kstatus": s.kstatus, "flux": s.flux, "argocd": s.argocd}, "object": s.document}
        for s in sorted(recorded, key=lambda s: (s.name, repr(signature(s.document))))
    ]
    text = yaml.safe_dump(listed, sort_keys=False, default_flow_style=None, width=118, allow_unicode=True)
    file.write_text(HEAD + text, encoding="utf-8")

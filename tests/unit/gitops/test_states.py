"""Every state that the integration tests reached, as kstatus, Flux and Argo CD judge it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from specdec_operator.api.v1alpha1.model_artifact import ModelArtifactStatus
from specdec_operator.api.v1alpha1.status import SpeculativeModelStatus
from specdec_operator.api.yaml_text import read_yaml, read_yaml_documents
from tests import argocd, flux, kstatus
from tests.vectors.gitops import State, signature, states

if TYPE_CHECKING:
    from pydantic import BaseModel

ROOT = Path(__file__).parents[3]
STATES = states()
MODELS: dict[str, type[BaseModel]] = {"SpeculativeModel": SpeculativeModelStatus, "ModelArtifact": ModelArtifactStatus}
HEALTH = (ROOT / "gitops" / "argocd" / "health.lua").read_text(encoding="utf-8")
each_state = pytest.mark.parametrize("state", STATES, ids=lambda state: state.name)


def expressions() -> dict[str, dict[str, str]]:
    """The CEL expressions of the Kustomization of the models, by kind."""
    documents = read_yaml_documents((ROOT / "gitops" / "flux" / "kustomizations.yaml").read_text(encoding="utf-8"))
    return {entry["kind"]: entry for document in documents for entry in document["spec"].get("healthCheckExprs", [])}


def documented_reasons() -> set[str]:
    text = (ROOT / "docs" / "conditions.md").read_text(encoding="utf-8")
    return set(re.findall(r"^\| `([A-Za-z0-9]+)` \|", text, re.MULTILINE))


def documented_rows() -> list[list[str]]:
    """The table of what tools say: a state, and the words of kstatus, Flux and Argo CD."""
    text = (ROOT / "docs" / "gitops.md").read_text(encoding="utf-8")
    table = text.split("## What tools say of a model")[1].split("\n## ")[0]
    return [[cell.strip() for cell in row.split("|")[1:-1]] for row in re.findall(r"^\| .+\|$", table, re.MULTILINE)]


EXPRESSIONS = expressions()
REASONS = documented_reasons()
ROWS = documented_rows()


@each_state
def test_kstatus_says_what_it_must(state: State) -> None:
    assert kstatus.verdict(state.document) == state.kstatus


@each_state
def test_argo_cd_says_what_it_must(state: State) -> None:
    assert argocd.health(HEALTH, state.document).status == state.argocd


@each_state
def test_flux_says_what_it_must(state: State) -> None:
    assert flux.verdict(EXPRESSIONS[state.document["kind"]], state.document) == state.flux


@each_state
def test_argo_cd_shows_the_operator_s_own_words(state: State) -> None:
    conditions = {c["type"]: c for c in state.document["status"]["conditions"]}
    message = argocd.health(HEALTH, state.document).message
    said = state.document["status"]["observedGeneration"] == state.document["metadata"]["generation"]
    assert message
    if said and state.kstatus != "Terminating":
        assert message.startswith(conditions["Ready"]["reason"])
        assert conditions["Ready"].get("message", "") in message


@each_state
def test_a_recorded_status_is_one_of_this_operator_s(state: State) -> None:
    read = MODELS[state.document["kind"]].model_validate(state.document["status"]).model_dump()
    assert [c["type"] for c in read["conditions"]] == [c["type"] for c in state.document["status"]["conditions"]]


@each_state
def test_a_reason_is_one_that_is_documented(state: State) -> None:
    assert {c["reason"] for c in state.document["status"]["conditions"]} <= REASONS


@each_state
def test_stalled_and_reconciling_are_never_said_together_nor_beside_ready(state: State) -> None:
    said = {c["type"] for c in state.document["status"]["conditions"] if c["status"] == "True"}
    assert len(said & {"Stalled", "Reconciling", "Ready"}) <= 1


@each_state
def test_nothing_is_current_before_its_generation_was_looked_at(state: State) -> None:
    behind = state.document["status"]["observedGeneration"] != state.document["metadata"]["generation"]
    assert not (behind and "Current" in (state.kstatus, state.flux))


@each_state
def test_the_documents_tell_the_same(state: State) -> None:
    (told,) = [row[1:] for row in ROWS if row[0].startswith(beginning(state))]
    assert [state.kstatus, state.flux if told[1] != "as before" else told[1], state.argocd] == told


def beginning(state: State) -> str:
    """How the row of a state begins in the documents: by what is written down of it, not by what tools say."""
    metadata, status = state.document["metadata"], state.document["status"]
    conditions = {c["type"]: c for c in status["conditions"]}
    if "deletionTimestamp" in metadata:
        return "it is being deleted"
    if metadata["generation"] != status["observedGeneration"]:
        return "no operator looked at it"
    motion = [kind for kind in ("Reconciling", "Stalled") if kind in conditions]
    if motion:
        return f"`{motion[0]}` is True"
    said = f"`Ready` is {conditions['Ready']['status']}"
    off = conditions["Ready"]["reason"] in ("Suspended", "NoPods")
    return f"{said} with `Suspended` or `NoPods`" if off else said


def test_no_state_is_listed_twice() -> None:
    signatures = [signature(state.document) for state in STATES]
    assert len(signatures) == len(set(signatures))


@pytest.mark.parametrize("kind", MODELS)
def test_every_word_of_kstatus_is_reached(kind: str) -> None:
    reached = {state.kstatus for state in STATES if state.document["kind"] == kind} - {"Terminating"}
    assert reached == {"InProgress", "Failed", "Current"}


def test_every_word_of_argo_cd_that_fits_is_reached() -> None:
    assert {state.argocd for state in STATES} == {"Healthy", "Progressing", "Degraded", "Suspended"}


@pytest.mark.parametrize("kind", MODELS)
def test_an_object_that_no_operator_saw_is_as_the_crd_defaults_it(kind: str) -> None:
    plural = kind.lower() + "s"
    crd: dict[str, Any] = read_yaml((ROOT / "crds" / f"specdec.dev_{plural}.yaml").read_text(encoding="utf-8"))
    default = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["default"]
    fresh = {"metadata": {"generation": 1}, "spec": {}, "status": default}
    assert kstatus.verdict(fresh) == "InProgress"
    assert argocd.health(HEALTH, fresh).status == "Progressing"

"""The examples of gitops/ hold together."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from specdec_operator.api.findings import check_document
from specdec_operator.api.v1alpha1.kinds import KINDS
from specdec_operator.api.yaml_text import read_yaml_documents

ROOT = Path(__file__).parents[3]
GITOPS = ROOT / "gitops"
FILES = sorted(GITOPS.rglob("*.yaml"))
KEPT = {
    "argocd.argoproj.io/sync-options": "Prune=false,Delete=false",
    "kustomize.toolkit.fluxcd.io/prune": "disabled",
}
"""What keeps an object from being pruned, and from going with its Application or Kustomization."""


def documents(*parts: str) -> list[dict[str, Any]]:
    text = GITOPS.joinpath(*parts).read_text(encoding="utf-8")
    return [document for document in read_yaml_documents(text) if document]


def one(*parts: str) -> dict[str, Any]:
    (document,) = documents(*parts)
    return document


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_the_settings_of_argo_cd_hold_the_tested_script_for_every_kind(kind: Any) -> None:
    data = one("argocd", "argocd-cm.yaml")["data"]
    script = (GITOPS / "argocd" / "health.lua").read_text(encoding="utf-8")
    assert data[f"resource.customizations.health.specdec.dev_{kind.kind}"] == script


def test_flux_is_told_of_every_kind() -> None:
    told = [e for d in documents("flux", "kustomizations.yaml") for e in d["spec"].get("healthCheckExprs", [])]
    assert {(e["apiVersion"], e["kind"]) for e in told} == {("specdec.dev/v1alpha1", kind.kind) for kind in KINDS}


def test_the_model_is_one_that_the_api_takes() -> None:
    assert check_document(one("models", "llama-8b.yaml")) == []


def test_the_model_leaves_its_replicas_to_the_autoscaler() -> None:
    assert "replicas" not in one("models", "llama-8b.yaml")["spec"]


@pytest.mark.parametrize("file", ["autoscaler.yaml", "keda.yaml"])
def test_an_autoscaler_targets_the_model(file: str) -> None:
    model, target = one("models", "llama-8b.yaml"), one("models", file)["spec"]["scaleTargetRef"]
    assert target == {"apiVersion": model["apiVersion"], "kind": model["kind"], "name": model["metadata"]["name"]}


@pytest.mark.parametrize("folder", ["models", "flux/operator"])
def test_every_file_of_a_kustomization_is_listed_or_an_alternative_to_one_that_is(folder: str) -> None:
    listed = set(one(folder, "kustomization.yaml")["resources"])
    there = {path.name for path in (GITOPS / folder).glob("*.yaml")} - {"kustomization.yaml", "keda.yaml"}
    assert listed == there


def test_the_store_is_the_model_s_and_is_kept_by_both_tools() -> None:
    store, model = one("models", "store.yaml"), one("models", "llama-8b.yaml")
    assert model["spec"]["storage"] == {"claimName": store["metadata"]["name"]}
    assert store["metadata"]["annotations"] == KEPT


def test_the_namespace_that_the_store_lies_in_is_kept_too() -> None:
    assert one("models", "namespace.yaml")["metadata"]["annotations"].items() >= KEPT.items()


def test_the_store_is_applied_in_the_model_s_own_wave() -> None:
    waves = [
        one("models", file)["metadata"].get("annotations", {}).get("argocd.argoproj.io/sync-wave", "0")
        for file in ("store.yaml", "llama-8b.yaml")
    ]
    assert waves == ["0", "0"]


def test_the_token_that_the_model_names_is_the_one_that_is_made() -> None:
    token, model = one("models", "token.yaml"), one("models", "llama-8b.yaml")
    secret = {"name": token["spec"]["target"]["name"], "key": token["spec"]["data"][0]["secretKey"]}
    named = [model["spec"][role]["source"]["huggingFace"]["tokenSecretRef"] for role in ("target", "draft")]
    assert named == [secret, secret]


def test_no_example_holds_a_secret() -> None:
    kinds = {document["kind"] for path in FILES for document in documents(str(path.relative_to(GITOPS)))}
    assert "ExternalSecret" in kinds
    assert "Secret" not in kinds


def test_the_models_come_after_the_operator() -> None:
    kustomizations = {d["metadata"]["name"]: d["spec"] for d in documents("flux", "kustomizations.yaml")[1:]}
    assert kustomizations["models"]["dependsOn"] == [{"name": "specdec-operator"}]
    assert kustomizations["specdec-operator"]["wait"]


def test_the_project_allows_what_its_applications_ask_for() -> None:
    project = one("argocd", "project.yaml")["spec"]
    for file in ("operator.yaml", "models.yaml"):
        application = one("argocd", file)["spec"]
        assert application["project"] == "specdec"
        assert application["source"]["repoURL"] in project["sourceRepos"]
        assert application["destination"] in project["destinations"]


def test_the_chart_is_asked_for_in_the_version_that_there_is() -> None:
    version = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    assert version is not None
    assert one("argocd", "operator.yaml")["spec"]["source"]["targetRevision"] == version[1]
    assert one("flux", "operator", "source.yaml")["spec"]["ref"]["semver"] == f"{version[1].rpartition('.')[0]}.x"


@pytest.mark.parametrize("path", sorted((ROOT / "tests" / "golden").glob("*.yaml")), ids=lambda path: path.stem)
def test_nothing_that_the_operator_makes_looks_like_a_git_tool_s_own(path: Path) -> None:
    made = list(yaml.load_all(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader))
    keys = {key for o in made for part in ("labels", "annotations") for key in (o["metadata"].get(part) or {})}
    assert keys
    assert not {key for key in keys if key == "app.kubernetes.io/instance" or "argocd" in key or "fluxcd" in key}


def test_the_store_that_the_operator_makes_has_no_owner_that_takes_it_along() -> None:
    golden = ROOT / "tests" / "golden" / "eagle-vicuna-7b.yaml"
    made = yaml.load_all(golden.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    (claim,) = [o for o in made if o["kind"] == "PersistentVolumeClaim"]
    assert "ownerReferences" not in claim["metadata"]

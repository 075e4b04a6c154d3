"""What the chart and the manifests render, held against a real API server; and which values Helm refuses."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from specdec_operator.api.configuration import OperatorConfiguration
from specdec_operator.api.yaml_text import read_yaml
from specdec_operator.cluster.rights import NODE_LABELS, WATCHED, rules
from specdec_operator.runtimes.table import load_table
from testbed.cluster.errors import CommandError
from testbed.cluster.helm import Helm, built_helm
from testbed.operator import manifests
from testbed.operator.chart import CHART, CONFIGURATION, ROOT
from tests.integration.dry_run import DryRun

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from testbed.cluster import Cluster, Progress

# The first use of Helm builds it.
pytestmark = [pytest.mark.controlplane, pytest.mark.timeout(1800)]

JsonObject = dict[str, Any]
Kustomize = Callable[[Path], str]
"""What kustomize makes of a folder."""


MANIFESTS = ROOT / "manifests"
NAMESPACE = "specdec-system"
TEAMS = ("chart-team-a", "chart-team-b")
DOCUMENT = re.compile(r"^---$", re.MULTILINE)
FENCE = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROMETHEUS_OPERATOR = "monitoring.coreos.com/v1"
ROW = {"name": "26.04-fixed", "like": "26.04", "image": "registry.example.com/triton:26.04", "source": "ours"}
TOLERATION = {"key": "dedicated", "operator": "Exists"}

MATRIX: dict[str, JsonObject] = {
    "the defaults": {},
    "two replicas": {"replicas": 2, "topologySpreadConstraints": [], "podDisruptionBudget": {"enabled": False}},
    "listed namespaces": {"namespaces": list(TEAMS)},
    "no network policy": {"networkPolicy": {"enabled": False}},
    "a network policy with readers": {
        "networkPolicy": {"enabled": True, "apiServerPorts": [6443], "metricsFrom": [{"namespaceSelector": {}}]}
    },
    "dashboards": {"monitoring": {"dashboards": {"enabled": True, "annotations": {"folder": "Inference"}}}},
    "an image by digest from a private registry": {
        "image": {"repository": "registry.example.com:5000/team/specdec", "digest": f"sha256:{'0' * 64}"},
        "imagePullSecrets": [{"name": "registry"}],
    },
    "a place of its own": {
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [TOLERATION],
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []}},
        "priorityClassName": "system-cluster-critical",
        "podLabels": {"team": "inference"},
        "podAnnotations": {"example.com/note": "one"},
    },
    "settings of the operator": {
        "config": {
            "storage": {"claim": {"size": "500Gi", "accessModes": ["ReadWriteMany"]}},
            "gpuProduct": "NVIDIA-H100-80GB-HBM3",
            "defaultReleases": {"LLMAPI": "26.02"},
            "releases": [ROW],
            "workers": 16,
        }
    },
    "names and an account of others": {
        "fullnameOverride": "speculation",
        "serviceAccount": {"create": False, "name": "default"},
        "rbac": {"create": False},
    },
    "ids of the platform": {"podSecurityContext": {"runAsUser": None, "runAsGroup": None}, "verbose": True},
    "no CRDs": {"crds": {"install": False}},
    "CRDs that go with it": {"crds": {"keep": False}},
}
PROMETHEUS: JsonObject = {
    "monitoring": {
        "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
        "podMonitor": {"enabled": True},
        "prometheusRule": {"enabled": True},
    }
}
WRONG: dict[str, tuple[str, str]] = {
    "text for a number": ("replicas=two", "/replicas"),
    "a misspelt value": ("replica=2", "'replica' not allowed"),
    "an account that nobody makes or names": ("serviceAccount.create=false", "serviceAccount.name: name the account"),
    "alerts that link to no URL": ("monitoring.prometheusRule.documentation=docs", "/monitoring/prometheusRule"),
    "a misspelt value inside": ("image.tga=1", "'tga' not allowed"),
    "fewer pods than none": ("replicas=-1", "/replicas': minimum: got -1, want 0"),
    "namespaces as text": ("namespaces=team-a", "/namespaces': got string, want array"),
    "no list of namespaces": ("namespaces=null", "missing property 'namespaces'"),
    "a part without content": ("image=null", "missing property 'image'"),
    "no repository": ("image.repository=null", "'/image': missing property 'repository'"),
    "a repository with its tag": ("image.repository=registry.example.com:5000/team/op:1", "/image/repository': "),
    "a repository as a URL": ("image.repository=https://registry.example.com/op", "/image/repository': "),
    "a digest without its algorithm": (f"image.digest={'a' * 64}", "/image/digest': "),
    "a duration in words": ("monitoring.podMonitor.interval=often", "/monitoring/podMonitor/interval"),
    "a switch as text": ("crds.install=nope", "/crds/install': got string, want boolean"),
    "a secret by its bare name": ("imagePullSecrets={registry}", "/imagePullSecrets/0': got string, want object"),
    "a misspelt setting": ("config.resyncSecond=60", "'/config': additional properties 'resyncSecond' not allowed"),
    "a misspelt setting inside": ("config.storage.claim.mode=RWX", "/config/storage/claim'"),
    "an access mode that there is not": (
        "config.storage.claim.accessModes={RWX}",
        "/config/storage/claim/accessModes/0': value must be one of 'ReadWriteOnce'",
    ),
    "a release as a number": ("config.defaultReleases.LLMAPI=26", "/config/defaultReleases/LLMAPI': got number"),
    "a policy that there is not": ("image.pullPolicy=Sometimes", "/image/pullPolicy"),
    "a namespace in capitals": ("namespaces={Team}", "/namespaces/0"),
    "a namespace listed twice": ("namespaces={a,a}", "/namespaces"),
    "too few workers": ("config.workers=0", "/config/workers"),
    "a size that is no quantity": ("config.storage.claim.size=lots", "/config/storage/claim/size"),
    "a claim without a size": ("config.storage.claim.claimName=a", "/config/storage/claim"),
    "a setting that the chart makes": ("config.instance=a/b", "'instance' not allowed"),
    "reading nodes without the right": ("config.readNodes=true", "'readNodes' not allowed"),
    "a row without a name": ("config.releases[0].like=26\\.04", "/config/releases/0"),
    "a method that there is not": ("config.releases[0].VLLM.methods={Egale}", "/config/releases/0/VLLM/methods/0"),
}


@pytest.fixture(scope="module")
def helm(progress: Progress) -> Iterator[Helm]:
    with built_helm(progress) as built:
        yield built


@pytest.fixture(scope="module")
def prepared(cluster: Cluster) -> Cluster:
    """A cluster with the namespaces that the chart's objects lie in."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    for name in (NAMESPACE, *TEAMS, manifests.WATCHED):
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
        cluster.kubectl("apply", "--server-side", "--filename=-", stdin=json.dumps(namespace))
    return cluster


@pytest.fixture(scope="module")
def dry_run(prepared: Cluster) -> DryRun:
    return DryRun(prepared.client)


@pytest.fixture(scope="module")
def kustomize(prepared: Cluster) -> Kustomize:
    return cache(lambda folder: prepared.kubectl("kustomize", str(folder)))


def render(helm: Helm, values: JsonObject) -> list[JsonObject]:
    """Render the chart with values; the test's pod is among the objects."""
    return read(_rendered(helm, json.dumps(values)))


@cache
def _rendered(helm: Helm, values: str) -> str:
    file = helm.home / "values.json"
    file.write_text(values)
    return helm.run("template", "specdec-operator", str(CHART), f"--namespace={NAMESPACE}", f"--values={file}")


def read(text: str) -> list[JsonObject]:
    """The documents of a text; nobody may change them, for those that several texts share are the same objects."""
    return [document for part in DOCUMENT.split(text) if (document := _document(part))]


@cache
def _document(text: str) -> JsonObject | None:
    document: JsonObject | None = read_yaml(text)
    return document


def only(documents: Sequence[JsonObject], kind: str) -> JsonObject:
    (found,) = (document for document in documents if document["kind"] == kind)
    return found


def test_helm_finds_nothing_to_complain_about(helm: Helm) -> None:
    assert "0 chart(s) failed" in helm.run("lint", "--strict", str(CHART))


@pytest.mark.parametrize("values", MATRIX.values(), ids=MATRIX)
def test_the_api_server_takes_every_object(helm: Helm, dry_run: DryRun, values: JsonObject) -> None:
    assert dry_run.refusals(render(helm, values)) == []


def test_the_api_server_says_what_it_does_not_take(helm: Helm, dry_run: DryRun) -> None:
    service = only(render(helm, {}), "Service")
    (refusal,) = dry_run.refusals([service, {**service, "spec": {**service["spec"], "prots": []}}])
    assert ".spec.prots: field not declared in schema" in refusal


@pytest.mark.parametrize("values", MATRIX.values(), ids=MATRIX)
def test_the_pods_pass_the_restricted_standard(helm: Helm, dry_run: DryRun, values: JsonObject) -> None:
    template = only(render(helm, values), "Deployment")["spec"]["template"]
    # The account may be one that the chart makes; admission would miss it before it looks at the rest.
    spec = {**template["spec"], "serviceAccountName": "default"}
    metadata = {**template["metadata"], "name": "tried", "namespace": NAMESPACE}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    assert dry_run.refusals([pod]) == []


@pytest.mark.parametrize("values", MATRIX.values(), ids=MATRIX)
def test_the_operator_reads_the_configuration_that_it_is_given(helm: Helm, values: JsonObject) -> None:
    documents = [d for d in render(helm, values) if "configuration.yaml" in d.get("data", {})]
    configuration = OperatorConfiguration.model_validate(yaml.safe_load(documents[0]["data"]["configuration.yaml"]))
    assert configuration.namespaces == values.get("namespaces", [])
    rows = {row["name"] for row in configuration.releases}
    assert rows <= {release.name for release in load_table(configuration.releases).releases}


def test_with_listed_namespaces_nothing_is_cluster_wide_but_the_crds(helm: Helm) -> None:
    documents = render(helm, {"namespaces": list(TEAMS)})
    unplaced = {document["kind"] for document in documents if "namespace" not in document["metadata"]}
    assert unplaced == {"CustomResourceDefinition"}


def test_each_listed_namespace_has_the_rights_that_the_code_needs(helm: Helm) -> None:
    documents = render(helm, {"namespaces": list(TEAMS)})
    roles = {d["metadata"]["namespace"]: d["rules"] for d in documents if d["kind"] == "Role"}
    assert [roles[team] for team in TEAMS] == [rules(WATCHED)] * 2


def test_the_cluster_role_has_the_rights_that_the_code_needs(helm: Helm) -> None:
    assert only(render(helm, {}), "ClusterRole")["rules"] == rules([*WATCHED, *NODE_LABELS])


def test_the_operator_reads_nodes_where_it_has_the_right_to(helm: Helm) -> None:
    def reads(values: JsonObject) -> tuple[bool, bool]:
        documents = render(helm, values)
        settings = only(documents, "ConfigMap")["data"]["configuration.yaml"]
        granted = {name for d in documents for rule in d.get("rules", []) for name in rule["resources"]}
        return read_yaml(settings)["readNodes"], "nodes" in granted

    assert reads({}) == (True, True)
    assert reads({"rbac": {"nodes": False}}) == reads({"namespaces": list(TEAMS)}) == (False, False)


def test_crds_are_kept_at_an_uninstall_unless_that_is_switched_off(helm: Helm) -> None:
    def policies(values: JsonObject) -> set[str]:
        crds = [d for d in render(helm, values) if d["kind"] == "CustomResourceDefinition"]
        return {crd["metadata"].get("annotations", {}).get("helm.sh/resource-policy", "") for crd in crds}

    assert policies({}) == {"keep"}
    assert policies({"crds": {"keep": False}}) == {""}


def test_crds_that_are_kept_are_kept_from_argo_cd_too(helm: Helm) -> None:
    crds = [d for d in render(helm, {}) if d["kind"] == "CustomResourceDefinition"]
    options = {crd["metadata"]["annotations"]["argocd.argoproj.io/sync-options"] for crd in crds}
    assert options == {"Prune=false"}


def test_settings_without_content_are_the_defaults(helm: Helm) -> None:
    assert render(helm, {"config": None}) == render(helm, {})


def test_a_changed_setting_starts_new_pods(helm: Helm) -> None:
    def annotations(values: JsonObject) -> JsonObject:
        template: JsonObject = only(render(helm, values), "Deployment")["spec"]["template"]["metadata"]
        return template

    assert annotations({}) == annotations({})
    assert annotations({}) != annotations({"config": {"workers": 2}})


def test_no_label_and_no_annotation_of_a_user_takes_the_place_of_the_charts(helm: Helm, tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    taken = {"podLabels": {"app.kubernetes.io/name": "own"}, "podAnnotations": {"checksum/configuration": "own"}}
    file.write_text(yaml.safe_dump(taken))
    assert "own" not in helm.run("template", "op", str(CHART), "--set=crds.install=false", f"--values={file}").split()


def test_the_objects_of_the_prometheus_operator_are_rendered_on_request(helm: Helm) -> None:
    documents = render(helm, PROMETHEUS)
    kinds = {document["kind"] for document in documents if document["apiVersion"] == PROMETHEUS_OPERATOR}
    assert kinds == {"ServiceMonitor", "PodMonitor", "PrometheusRule"}


def test_the_service_monitor_selects_the_service_of_the_metrics(helm: Helm) -> None:
    documents = render(helm, PROMETHEUS)
    service, monitor = only(documents, "Service"), only(documents, "ServiceMonitor")
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert monitor["spec"]["endpoints"][0]["port"] in {port["name"] for port in service["spec"]["ports"]}


def test_alerts_look_at_the_job_of_the_releases_own_service(helm: Helm) -> None:
    documents = render(helm, PROMETHEUS | {"fullnameOverride": "speculation"})
    text = json.dumps(only(documents, "PrometheusRule"))
    assert only(documents, "Service")["metadata"]["name"] == "speculation-metrics"
    assert 'job=\\"speculation-metrics\\"' in text
    assert "OPERATOR_JOB" not in text


@pytest.mark.parametrize(("value", "said"), WRONG.values(), ids=WRONG)
def test_a_wrong_value_is_refused_by_its_name(helm: Helm, value: str, said: str) -> None:
    with pytest.raises(CommandError) as refused:
        helm.run("template", "specdec-operator", str(CHART), f"--set={value}")
    assert said in str(refused.value)


def test_the_manifests_are_what_the_chart_renders(helm: Helm) -> None:
    written = {str(path.relative_to(MANIFESTS)): path.read_text() for path in MANIFESTS.rglob("*.yaml")}
    assert written == manifests.generated(helm)


def test_the_api_server_takes_the_one_file(dry_run: DryRun) -> None:
    assert dry_run.refusals(read((MANIFESTS / "install.yaml").read_text())) == []


@pytest.mark.parametrize("overlay", ["cluster-wide", "namespaced", "dashboards"])
def test_the_api_server_takes_what_kustomize_builds(kustomize: Kustomize, dry_run: DryRun, overlay: str) -> None:
    assert dry_run.refusals(read(kustomize(MANIFESTS / overlay))) == []


def test_the_overlay_for_all_namespaces_holds_what_the_one_file_holds(kustomize: Kustomize) -> None:
    def named(text: str) -> dict[tuple[str, str], Any]:
        return {(d["kind"], d["metadata"]["name"]): d for d in read(text) if d["kind"] != "ConfigMap"}

    # The name of the configuration ends with a hash of its content.
    unhashed = re.sub(rf"\b({CONFIGURATION})-[a-z0-9]+\b", r"\1", kustomize(MANIFESTS / "cluster-wide"))
    assert named(unhashed) == named((MANIFESTS / "install.yaml").read_text())


def test_the_overlay_for_listed_namespaces_binds_cluster_wide_nothing_but_the_crds(kustomize: Kustomize) -> None:
    documents = read(kustomize(MANIFESTS / "namespaced"))
    unplaced = {document["kind"] for document in documents if "namespace" not in document["metadata"]}
    assert unplaced == {"CustomResourceDefinition", "Namespace"}


def test_what_the_chart_makes_on_request_is_there_without_helm(helm: Helm, kustomize: Kustomize) -> None:
    def named(documents: Iterable[JsonObject]) -> set[tuple[str, str]]:
        return {(document["kind"], document["metadata"]["name"]) for document in documents}

    folders = ("prometheus", "dashboards")
    separate = [document for name in folders for document in read(kustomize(MANIFESTS / name))]
    monitoring = {**PROMETHEUS["monitoring"], "dashboards": {"enabled": True}}
    requested = render(helm, {"monitoring": monitoring})
    assert named(separate) == named(requested) - named(render(helm, {}))


def told(name: str, directory: Path) -> str:
    """Return the block of docs/install.md that begins with a file's name, as it is for a file in a directory."""
    text = (ROOT / "docs" / "install.md").read_text()
    (found,) = (block for block in FENCE.findall(text) if block.startswith(f"# {name}"))
    return str(found).replace("PATH/TO/manifests", os.path.relpath(MANIFESTS, directory))


def test_helm_takes_the_values_that_are_told(helm: Helm, tmp_path: Path) -> None:
    documents = render(helm, yaml.safe_load(told("values.yaml", tmp_path)))
    assert only(documents, "Deployment")["spec"]["replicas"] == 2


def test_the_kustomization_that_is_told_makes_a_whole_operator(kustomize: Kustomize, tmp_path: Path) -> None:
    for name in ("kustomization.yaml", "team-a/kustomization.yaml", "configuration.yaml"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(told(name, path.parent))
    documents = read(kustomize(tmp_path))
    settings = only(documents, "ConfigMap")["data"]["configuration.yaml"]
    assert OperatorConfiguration.model_validate(yaml.safe_load(settings)).namespaces == ["team-a"]
    assert {d["metadata"].get("namespace") for d in documents if d["kind"] == "Role"} == {NAMESPACE, "team-a"}
    image = only(documents, "Deployment")["spec"]["template"]["spec"]["containers"][0]["image"]
    assert image == "REGISTRY/specdec-operator:0.1.0"


def test_another_namespace_for_the_operator_moves_its_account_and_its_lease(
    kustomize: Kustomize, tmp_path: Path
) -> None:
    cluster_wide = os.path.relpath(MANIFESTS / "cluster-wide", tmp_path)
    kustomization = {"namespace": "ops", "resources": [cluster_wide]}
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    documents = read(kustomize(tmp_path))
    subjects = [s["namespace"] for d in documents for s in d.get("subjects", [])]
    assert set(subjects) == {"ops"}
    assert only(documents, "Deployment")["metadata"]["namespace"] == "ops"
    arguments = only(documents, "Deployment")["spec"]["template"]["spec"]["containers"][0]["args"]
    assert "--instance=$(POD_NAMESPACE)/specdec-operator" in arguments


def test_an_operator_of_listed_namespaces_is_moved_as_told(kustomize: Kustomize, tmp_path: Path) -> None:
    for folder, text in (
        ("", yaml.safe_dump({"resources": ["operator", "team-a"]})),
        ("operator", yaml.safe_dump({"namespace": "ops", "resources": [str(MANIFESTS / "base")]})),
        ("team-a", told("watched.yaml", tmp_path / "team-a")),
    ):
        (tmp_path / folder).mkdir(exist_ok=True)
        relative = text.replace(str(MANIFESTS), os.path.relpath(MANIFESTS, tmp_path / folder))
        (tmp_path / folder / "kustomization.yaml").write_text(relative)
    documents = read(kustomize(tmp_path))
    assert {s["namespace"] for d in documents for s in d.get("subjects", [])} == {"ops"}
    assert {d["metadata"].get("namespace") for d in documents if d["kind"] == "Role"} == {"ops", "team-a"}

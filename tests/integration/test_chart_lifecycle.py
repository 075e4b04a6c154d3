"""Install, upgrade, rollback and uninstall by real Helm while a model serves: none of them touches what serves it."""

from __future__ import annotations

import asyncio
import json
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio
import yaml

from specdec_operator.cluster.resources import PODS
from specdec_operator.installation import check
from testbed.cluster import ClusterOptions, KwokNodes, running_cluster
from testbed.cluster.errors import CommandError
from testbed.cluster.helm import Helm, built_helm
from testbed.operator import operator_in_process
from testbed.operator.install import NAMESPACE, SERVICE_ACCOUNT
from testbed.operator.manifests import CHART
from testbed.operator.metrics import read_gauge
from tests.integration.scene import PRODUCT, baseline, configuration, stage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from testbed.cluster import Cluster, Progress
    from tests.integration.scene import Scene, Stage

# The first use of Helm builds it.
pytestmark = [pytest.mark.controlplane, pytest.mark.timeout(1800), pytest.mark.asyncio(loop_scope="module")]

RELEASE = "specdec-operator"
CRD = "speculativemodels.specdec.dev"
MODEL = "steady"
MARK = "A sentence of the next version."
WATCHED, UNWATCHED = "chart-watched", "chart-unwatched"


@dataclass(frozen=True)
class Serving:
    """What serves a model.

    Attributes:
        deployment: its uid and generation.
        pods: the pods' uids.
        ready: the status of condition Ready.
    """

    deployment: tuple[str, int]
    pods: frozenset[str]
    ready: str


@dataclass
class History:
    """What was seen along the way.

    Attributes:
        serving: what served the model after each step.
        said: what Helm printed at each step.
        crd: the CRD's schema after each step.
        rights: cluster-wide roles and bindings of ours after each step.
        shown: the metric of the model's condition Ready while it served.
        served_after_upgrade: whether a model that came after the upgrade was served.
    """

    serving: dict[str, Serving] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)
    crd: dict[str, str] = field(default_factory=dict)
    rights: dict[str, list[str]] = field(default_factory=dict)
    served_after_upgrade: bool = False
    shown: float | None = None


@dataclass
class Installation:
    """Helm on a cluster, and the watcher of one model."""

    helm: Helm
    cluster: Cluster
    history: History

    async def step(self, name: str, *arguments: str, scene: Scene | None = None) -> None:
        """Run Helm, and note what it said and what is there then."""
        words = [*arguments, f"--namespace={NAMESPACE}", "--wait", "--timeout=120s"]
        self.history.said[name] = await asyncio.to_thread(self.helm.run, *words)
        crd = json.loads(self.cluster.kubectl("get", "crd", CRD, "--output=json"))
        self.history.crd[name] = json.dumps(crd["spec"]["versions"][0]["schema"])
        roles = self.cluster.kubectl("get", "clusterrole,clusterrolebinding", "--output=name").split()
        self.history.rights[name] = [role for role in roles if "specdec" in role]
        if scene:
            self.history.serving[name] = await serving(scene)


async def serving(scene: Scene) -> Serving:
    deployment = await scene.deployment(MODEL)
    pods = await scene.objects(PODS, labels=f"specdec.dev/model={MODEL}")
    conditions = {c["type"]: c["status"] for c in (await scene.model(MODEL))["status"]["conditions"]}
    metadata = deployment["metadata"]
    return Serving(
        (metadata["uid"], metadata["generation"]),
        frozenset(pod["metadata"]["uid"] for pod in pods),
        conditions["Ready"],
    )


@pytest.fixture(scope="module")
def chart_cluster(progress: Progress) -> Iterator[Cluster]:
    """A cluster in which nothing of the operator is installed."""
    nodes = KwokNodes(count=2, gpus=8, product=PRODUCT)
    with running_cluster(ClusterOptions(kwok_nodes=nodes), progress=progress) as running:
        yield running


@pytest.fixture(scope="module")
def helm(chart_cluster: Cluster, progress: Progress) -> Iterator[Helm]:
    with built_helm(progress, kubeconfig=chart_cluster.kubeconfig) as built:
        yield built


@pytest.fixture(scope="module")
def next_chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The chart as a next version may be: another CRD, another number."""
    copy = tmp_path_factory.mktemp("next") / CHART.name
    shutil.copytree(CHART, copy)
    for path in (copy / "files" / "crds").iterdir():
        crd = yaml.safe_load(path.read_text())
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = MARK
        path.write_text(yaml.safe_dump(crd))
    about = yaml.safe_load((copy / "Chart.yaml").read_text())
    (copy / "Chart.yaml").write_text(yaml.safe_dump(about | {"version": "0.2.0"}))
    return copy


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def staged(chart_cluster: Cluster) -> AsyncIterator[Stage]:
    async with stage(chart_cluster) as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def history(helm: Helm, staged: Stage, next_chart: Path) -> History:
    """The release's life while a model serves; the operator itself runs here, under the release's account."""
    installation = Installation(helm, staged.cluster, History())
    await installation.step("install", "install", RELEASE, str(CHART), "--create-namespace")
    async with operator_in_process(staged.cluster, configuration(), prover=staged.prover) as operator:
        await asyncio.to_thread(check, operator.url)
        scene = await staged.scene("chart-models")
        await scene.apply(MODEL, baseline())
        await scene.until_ready(MODEL)
        installation.history.serving["before"] = await serving(scene)
        labels = {"namespace": scene.namespace, "name": MODEL, "type": "Ready", "status": "True", "reason": "Serving"}
        installation.history.shown = await read_gauge(f"{operator.url}/metrics", "specdec_model_condition", labels)
        sets = ("--set=replicas=2", "--set=config.workers=4")
        await installation.step("upgrade", "upgrade", RELEASE, str(next_chart), *sets, scene=scene)
        await scene.apply("later", baseline())
        await scene.until_ready("later")
        installation.history.served_after_upgrade = True
        await installation.step("rollback", "rollback", RELEASE, "1", scene=scene)
    await installation.step("uninstall", "uninstall", RELEASE, scene=scene)
    await installation.step("install again", "install", RELEASE, str(CHART))
    async with operator_in_process(staged.cluster, configuration(), prover=staged.prover):
        await scene.apply("last", baseline())
        await scene.until_ready("last")
        installation.history.serving["install again"] = await serving(scene)
    return installation.history


@pytest.mark.parametrize("step", ["upgrade", "rollback", "uninstall", "install again"])
async def test_what_serves_a_model_is_not_touched_by(step: str, history: History) -> None:
    assert history.serving["before"].ready == "True"
    assert history.serving["before"].pods
    assert history.serving[step] == history.serving["before"]


async def test_a_models_condition_is_a_metric(history: History) -> None:
    assert history.shown == 1


async def test_an_upgrade_brings_the_new_crds(history: History) -> None:
    assert MARK not in history.crd["install"]
    assert MARK in history.crd["upgrade"]


async def test_a_rollback_takes_the_crds_back(history: History) -> None:
    assert MARK not in history.crd["rollback"]


async def test_new_models_are_served_after_an_upgrade(history: History) -> None:
    assert history.served_after_upgrade


async def test_an_uninstall_takes_the_rights_and_leaves_the_crds(history: History) -> None:
    assert history.rights["install"]
    assert history.rights["uninstall"] == []
    assert history.crd["uninstall"]


async def test_an_uninstall_says_that_the_crds_are_kept(history: History) -> None:
    assert CRD in history.said["uninstall"]


async def test_the_notes_say_what_an_uninstall_leaves(history: History) -> None:
    for part in ("models go on serving", "the CRDs", "PersistentVolumeClaim", "helm test specdec-operator"):
        assert part in history.said["install"]


@dataclass(frozen=True)
class Team:
    """The release after it was changed to watch one namespace.

    Attributes:
        forbidden: what the API server forbade its operator.
        cluster_wide: its cluster roles and bindings.
    """

    forbidden: dict[str, int]
    cluster_wide: list[str]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def team(helm: Helm, staged: Stage, history: History) -> Team:
    """The release after it was changed to watch one namespace, in which its operator served a model."""
    installation = Installation(helm, staged.cluster, history)
    watched, unwatched = await staged.scene(WATCHED), await staged.scene(UNWATCHED)
    await installation.step("namespaced", "upgrade", RELEASE, str(CHART), f"--set=namespaces={{{WATCHED}}}")
    settings = configuration(namespaces=[WATCHED])
    async with operator_in_process(staged.cluster, settings, prover=staged.prover) as operator:
        await unwatched.apply(MODEL, baseline())
        await watched.apply(MODEL, baseline())
        await watched.until_ready(MODEL)
        forbidden = (await operator.requests()).with_code("403")
    assert await unwatched.jobs() == []
    return Team(forbidden, history.rights["namespaced"])


async def test_an_operator_of_listed_namespaces_has_no_right_elsewhere(team: Team) -> None:
    assert team.cluster_wide == []


async def test_an_operator_of_listed_namespaces_is_forbidden_nothing_that_it_asks(team: Team) -> None:
    assert team.forbidden == {}


@pytest.mark.parametrize(
    ("verb", "resource", "place", "allowed"),
    [
        ("create", "jobs.batch", WATCHED, "yes"),
        ("create", "jobs.batch", UNWATCHED, "no"),
        ("list", "pods", UNWATCHED, "no"),
        ("get", "secrets", WATCHED, "no"),
        ("update", "leases.coordination.k8s.io/specdec-operator", NAMESPACE, "yes"),
        ("update", "leases.coordination.k8s.io/another", NAMESPACE, "no"),
        ("list", "nodes", "", "no"),
        ("list", "persistentvolumes", "", "no"),
        ("list", "storageclasses.storage.k8s.io", "", "no"),
    ],
)
@pytest.mark.usefixtures("team")
async def test_the_api_server_says_what_an_operator_of_listed_namespaces_may(
    chart_cluster: Cluster, verb: str, resource: str, place: str, allowed: str
) -> None:
    account = f"--as=system:serviceaccount:{NAMESPACE}:{SERVICE_ACCOUNT}"
    where = [f"--namespace={place}"] if place else []
    assert answer(chart_cluster, "auth", "can-i", verb, resource, account, *where) == allowed


def answer(cluster: Cluster, *arguments: Any) -> str:
    """Return what kubectl says; a no is an exit code of 1 and nothing else."""
    try:
        return cluster.kubectl(*arguments).strip()
    except CommandError:
        return "no"

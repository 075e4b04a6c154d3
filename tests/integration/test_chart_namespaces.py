"""A release of the chart that watches listed namespaces has rights in those alone, and they are enough."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from testbed.cluster.helm import built_helm
from testbed.operator import operator_in_process
from testbed.operator.chart import CHART
from tests.integration.scene import baseline, configuration, stage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from testbed.cluster import Cluster, Progress
    from testbed.cluster.helm import Helm
    from tests.integration.scene import Stage

# The first use of Helm builds it.
pytestmark = [pytest.mark.controlplane, pytest.mark.timeout(1800), pytest.mark.asyncio(loop_scope="module")]

# Beside what the cluster has of its own: another release, in another namespace, without CRDs.
RELEASE, NAMESPACE = "team", "chart-team"
NAME = f"{RELEASE}-specdec-operator"
MODEL = "steady"
WATCHED, UNWATCHED = "chart-watched", "chart-unwatched"


@dataclass(frozen=True)
class Team:
    """The release.

    Attributes:
        forbidden: what the API server forbade its operator.
        cluster_wide: its cluster roles and bindings, first for all namespaces, then for a listed one.
    """

    forbidden: dict[str, int]
    cluster_wide: tuple[list[str], list[str]]


@pytest.fixture(scope="module")
def helm(operator_cluster: Cluster, progress: Progress) -> Iterator[Helm]:
    with built_helm(progress, kubeconfig=operator_cluster.kubeconfig) as built:
        yield built


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def staged(operator_cluster: Cluster) -> AsyncIterator[Stage]:
    async with stage(operator_cluster) as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def team(helm: Helm, staged: Stage) -> AsyncIterator[Team]:
    """The release after it was changed to watch one namespace, in which its operator served a model."""
    cluster = staged.cluster
    watched, unwatched = await staged.scene(WATCHED), await staged.scene(UNWATCHED)
    release = [RELEASE, str(CHART), f"--namespace={NAMESPACE}", "--set=crds.install=false"]
    await asyncio.to_thread(helm.run, "install", *release, "--create-namespace")
    first = cluster_wide(cluster)
    await asyncio.to_thread(helm.run, "upgrade", *release, f"--set=namespaces={{{WATCHED}}}")
    then = cluster_wide(cluster)
    kubeconfig = await asyncio.to_thread(cluster.kubeconfig_for_service_account, namespace=NAMESPACE, name=NAME)
    settings = configuration(namespaces=[WATCHED], instance=f"{NAMESPACE}/{NAME}")
    async with operator_in_process(cluster, settings, prover=staged.prover, kubeconfig=kubeconfig) as operator:
        await unwatched.apply(MODEL, baseline())
        await watched.apply(MODEL, baseline())
        await watched.until_ready(MODEL)
        forbidden = (await operator.requests()).with_code("403")
    assert await unwatched.jobs() == []
    yield Team(forbidden, (first, then))
    await asyncio.to_thread(helm.run, "uninstall", RELEASE, f"--namespace={NAMESPACE}", "--ignore-not-found")


async def test_a_release_that_lists_namespaces_gives_its_cluster_wide_rights_back(team: Team) -> None:
    kinds = ("clusterrole", "clusterrolebinding")
    assert team.cluster_wide == ([f"{kind}.rbac.authorization.k8s.io/{NAME}" for kind in kinds], [])


async def test_an_operator_of_listed_namespaces_is_forbidden_nothing_that_it_asks(team: Team) -> None:
    assert team.forbidden == {}


@pytest.mark.parametrize(
    ("verb", "resource", "place", "allowed"),
    [
        ("create", "jobs.batch", WATCHED, True),
        ("create", "jobs.batch", UNWATCHED, False),
        ("list", "pods", UNWATCHED, False),
        ("get", "secrets", WATCHED, False),
        ("update", f"leases.coordination.k8s.io/{NAME}", NAMESPACE, True),
        ("update", "leases.coordination.k8s.io/another", NAMESPACE, False),
        ("list", "nodes", "", False),
        ("list", "persistentvolumes", "", False),
        ("list", "storageclasses.storage.k8s.io", "", False),
    ],
)
@pytest.mark.usefixtures("team")
async def test_the_api_server_says_what_an_operator_of_listed_namespaces_may(
    operator_cluster: Cluster, verb: str, resource: str, place: str, *, allowed: bool
) -> None:
    assert may(operator_cluster, verb, resource, place) is allowed


@pytest.mark.usefixtures("team")
async def test_an_uninstall_takes_every_role_along(helm: Helm, operator_cluster: Cluster) -> None:
    """The last one of the file: the others look at the release."""
    selector = (f"--selector=app.kubernetes.io/instance={RELEASE}", "--all-namespaces", "--output=name")
    roles = ("get", "roles,rolebindings,clusterroles,clusterrolebindings,serviceaccounts", *selector)
    before = await asyncio.to_thread(operator_cluster.kubectl, *roles)
    await asyncio.to_thread(helm.run, "uninstall", RELEASE, f"--namespace={NAMESPACE}")
    after = await asyncio.to_thread(operator_cluster.kubectl, *roles)
    assert (len(before.split()), after) == (5, "")


def cluster_wide(cluster: Cluster) -> list[str]:
    """Return the release's cluster roles and their bindings."""
    selector = f"--selector=app.kubernetes.io/instance={RELEASE}"
    return cluster.kubectl("get", "clusterrole,clusterrolebinding", selector, "--output=name").split()


def may(cluster: Cluster, verb: str, resource: str, place: str) -> bool:
    """Ask the API server what the release's operator may do in a namespace, or cluster-wide.

    Args:
        resource: As `kubectl auth can-i` takes it, such as `jobs.batch` or `leases.coordination.k8s.io/name`.
    """
    qualified, _, name = resource.partition("/")
    plural, _, group = qualified.partition(".")
    spec = {
        "user": f"system:serviceaccount:{NAMESPACE}:{NAME}",
        "groups": ["system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}", "system:authenticated"],
        "resourceAttributes": {"verb": verb, "group": group, "resource": plural, "name": name, "namespace": place},
    }
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    answer = cluster.client.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    said: bool = answer["status"]["allowed"]
    return said
